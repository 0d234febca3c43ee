/* SPDX-License-Identifier: MIT
 *
 * serve - what all servers of bench/ in C share: the command line's port, the count of requests, and the server's own clock.
 *
 *     CASE_listens PORT            at once; then it serves until SIGTERM or SIGINT
 *     CASE 5.912 us epoll          CPU time of a request, and what the kernel was asked by
 *     CASE_user 0.110              of that, in user space
 *     CASE_system 5.802
 *     CASE_requests 1234567
 * SIGUSR1 begins what is counted, SIGUSR2 ends it: a load sends them when all its connections stand, and before it lets them go. Without
 * them everything counts. The sum of both parts is exact; how it is divided the kernel guesses at each tick of its timer, so that
 * a split means something after seconds, not before. The peers in other languages print the same.
 *
 * Threads: serve_add by whoever serves; all else by the main thread, and the signals' handler, which makes system calls alone.
 */
#ifndef WEFT_BENCH_SERVE_H
#define WEFT_BENCH_SERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SERVE_PORT       7000 /* unless one is named; 0: one that is free */
#define SERVE_ECHO_BYTES 64   /* of a message: so much is a request */
#define SERVE_BUF_BYTES  2048 /* of a connection's buffer */

struct serve {
    const char *name; /* of the case */
    uint64_t
        request_bytes; /* serve_add is given bytes, so many of them are a request; 0: it is given requests */
    _Atomic uint64_t counted; /* by serve_add */
    bool shared;              /* several threads count */
};
extern struct serve serve_here;

/* Handlers are there from now on, and as many descriptors as this process may have. */
void serve_begin(const char *name, uint64_t request_bytes, bool shared);

/* The number behind the case; ends the process with code 2 if it is no port. */
uint16_t serve_port(uint64_t number);

/* Tells that it listens there. */
void serve_listens(unsigned port);

/* A socket that listens at that port of 127.0.0.1, non-blocking; of servers that have no library for it. Ends the process if it cannot. */
int serve_listen(uint16_t port);

/* TERM and INT: true once one of them has come. For servers without a signal's handler of their own. */
void serve_stops_by_signal(void);
bool serve_is_stopped(void);

/* The lines above. */
void serve_report(void);

/* Relaxed: a number, read when all is over. With one thread it needs no read-modify-write. */
static inline void serve_add(uint64_t n)
{
    if (serve_here.shared) {
        atomic_fetch_add_explicit(&serve_here.counted, n, memory_order_relaxed);
    } else {
        uint64_t was = atomic_load_explicit(&serve_here.counted, memory_order_relaxed);
        atomic_store_explicit(&serve_here.counted, was + n, memory_order_relaxed);
    }
}

#endif
