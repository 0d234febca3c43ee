/* SPDX-License-Identifier: MIT
 *
 * ring_steps - reads and writes of one buffer by steps (direct_steps.h), where the backend fetches ahead and hands sends in together; what a step leaves to the table is
 * io/fdstream.c's. For model tests, behind ring_port.h.
 */
#ifndef MODEL_RING_STEPS_H
#define MODEL_RING_STEPS_H

#include "io/fdstream.h"

/* ---- the rest of the system: nobody opens anything, and no call is made but by the backend ---- */

_Thread_local struct weft__here weft__here_record; /* of the one thread that all are played by: a task's */

int weft__driver_here(struct weft_rt *rt, bool spread, struct weft__port **into)
{
    (void)rt, (void)spread, (void)into;
    return -ENXIO;
}

int weft__pipe_open(int into[2])
{
    (void)into;
    return -EMFILE;
}

int weft__fd_unblock(int fd)
{
    (void)fd;
    return -EBADF;
}

void weft__fd_put_back(int fd, int unblocked)
{
    (void)fd, (void)unblocked;
}

int weft__socket_local(int fd, struct weft__address *into)
{
    (void)fd, (void)into;
    return -ENOTSOCK;
}

bool weft__socket_is_stream(int fd)
{
    (void)fd;
    return false;
}

int weft__address_port(const struct weft__address *addr)
{
    (void)addr;
    return -1;
}

int weft__socket_shutdown(int fd, enum weft__socket_half half)
{
    (void)fd, (void)half;
    return -ENOTCONN;
}

/* Direct calls are for floods. */
static ssize_t recv_one_now(int fd, void *into, size_t bytes)
{
    const struct iovec one = {into, bytes};
    model_assert(floods);
    return weft__socket_recv(fd, &one, 1, false);
}

static ssize_t send_one_now(int fd)
{
    model_assert(floods);
    return weft__socket_send(fd, NULL, 1);
}

#define weft__socket_recv_one(fd, into, bytes, flags) recv_one_now(fd, into, bytes)
#define weft__socket_send_one(fd, from, bytes)        ((void)(from), (void)(bytes), send_one_now(fd))

/* ---- the tables ---- */

#define reads     table_reads
#define writes    table_writes
#define recv_one  table_recv_one
#define send_one  table_send_one
#define sends_one table_sends_one
#include "io/fdstream.c"
#undef reads
#undef writes
#undef recv_one
#undef send_one
#undef sends_one

#include "direct_steps.h"

/* ---- for all cases ---- */

static int steps_main(int argc, char **argv, const struct model_case *cases, size_t count)
{
    static struct weft_task task;
    weft__here_record.task = &task;
    lends_slots = true;
    return model_main(argc, argv, cases, count);
}

#endif
