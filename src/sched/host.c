/* SPDX-License-Identifier: MIT
 *
 * host - the epoll of a host, and its alarm; the idea is in host.h.
 */
#include "sched/host.h"

#include "base/assert.h"
#include "driver/driver.h"
#include "sys/alarm.h"
#include "sys/epoll.h"
#include "sys/fd.h"
#include "sys/futex.h"

void weft__host_init(struct weft__host *host)
{
    *host = (struct weft__host){.epoll = -1, .alarm = -1, .alarm_at = WEFT__NEVER};
}

int weft__host_open(struct weft__host *host, int event)
{
    struct weft__host opened = {.alarm_at = WEFT__NEVER};
    int r = weft__epoll_open(&opened.epoll);
    if (r < 0) return r;
    r = weft__alarm_open(&opened.alarm);
    if (r < 0) goto out_epoll;
    r = weft__epoll_add(opened.epoll, event, EPOLLIN, 0);
    if (r == 0) r = weft__epoll_add(opened.epoll, opened.alarm, EPOLLIN, 0);
    if (r < 0) goto out_alarm;
    *host = opened;
    return 0;

out_alarm:
    weft__fd_close(opened.alarm);
out_epoll:
    weft__fd_close(opened.epoll);
    return r;
}

/* To set it, even to the same time, makes it unreadable: so not if nothing has changed, since what was
 * due may still be. */
void weft__host_set(struct weft__host *host, int64_t next)
{
    if (host->alarm < 0 || host->alarm_at == next) return;
    int r = weft__alarm_set(host->alarm, next);
    weft_assert(r == 0); /* an fd of our own, and a time that it knows */
    host->alarm_at = next;
}

bool weft__host_nest(struct weft__host *host, struct weft__port *port)
{
    /* acquire: [port-open] with open_port */
    if (host->nested || weft__port_idle(port) || !load_acquire(&port->open)) return true;
    host->nested = weft__epoll_add(host->epoll, port->kernel, EPOLLIN, 0) == 0;
    return host->nested;
}

void weft__host_close(struct weft__host *host)
{
    if (host->epoll < 0) return;
    weft__fd_close(host->alarm);
    weft__fd_close(host->epoll);
    weft__host_init(host);
}
