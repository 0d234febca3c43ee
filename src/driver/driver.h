/* SPDX-License-Identifier: MIT
 *
 * driver - turns kernel events into wakes: the verbs, and what each promises. A backend is a table of them.
 *
 * A runtime has a driver, a driver has a *port* for each shard: what the kernel gives for waiting (an epoll, a
 * ring), and the slots of the fds that live there. A port opens with its first fd; before that it costs a load of
 * a zero. Workers drive their own port, at their fairness interval and whenever they have nothing; anybody else may,
 * at any time.
 *
 *     open     the kernel's objects of a port                            [under its lock, before its first fd]
 *     close    those again; no event comes any more                      [under its lock]
 *     add      watch a slot's fd, for both directions, once for its life
 *     del      no more; events that are on their way find another generation
 *     wait     fetch what has come, up to so many events; sleep for it if there is none, until a time-out
 *     deliver  what was fetched, to slots and their waiters, whose tasks are pushed to where this thread's wakes go
 *     take     one operation, tried: what has come for it, or -EAGAIN; and what was learnt of readiness, which the caller clears
 *     has      would wait bring something? A look that takes nothing
 *     behind   is there something that the kernel would not take, and that has to be handed in again soon? NULL: never
 *     arm      somebody is about to wait on a side: see that an event comes. NULL: add did
 *     direct   from now on the fd is read by system calls alone. False: not yet, what has come is taken first. NULL: it always is
 *     unsend   the writer gives up: what SEND_SOON has handed in is taken back, and nothing has been sent: -EAGAIN; or it has been, and this
 *              is the answer. NULL: all sends are made on the spot
 *     let_go   the slot's last user has left, the fd is closed. False: the kernel still has a request of it, and the backend
 *              gives the slot back behind that (weft__port_give_back). NULL: always   [under the port's lock]
 *     lose     this is the child of a fork: what of the kernel's would live here on behind its parent goes. NULL: there is nothing
 *     free     the memory of a port that was closed, or never opened. NULL: none
 * Fetching and delivering are two steps so that a worker marked as asleep is not while it wakes others. Whatever sleeps in
 * wait is ended by the port's event (sys/event.h), which is among what is watched.
 *
 * TAKE-ON-POLL  Sockets are taken from when their waiter is polled, on every backend: the slot holds what has come
 * (readiness here; buffers and fds of a multishot on a ring), and an operation takes it or waits. So giving one up unlinks
 * a waiter and touches no kernel object, a select costs no re-arming, and nothing is lost by a loser.
 *
 * LIFE  weft__driver_add gives a slot for an fd that it takes, weft__driver_close ends it. The driver's memory lives until its runtime has
 * let go of it and the last slot is gone: an fd may be closed after its runtime. In the child of a fork the driver is lost: nothing
 * is added to or taken out of the kernel's objects, which are the parent's too; fds are closed there and no more.
 *
 * Threads: any, unless a verb says otherwise. Locks: rank driver, a port's slots and its opening.
 * Pairs: [port-open] the event's fd is there before the port counts as open.
 */
#ifndef WEFT_DRIVER_DRIVER_H
#define WEFT_DRIVER_DRIVER_H

#include "driver/slot.h"
#include "limits.h"
#include "sys/lock.h"

#include <weft/stream.h>

#include <stdbool.h>

struct weft_rt;
struct weft__address;
struct weft__files;

/* What wait has fetched: the backend's own form. */
struct weft__events {
    int count;
    bool full; /* there may be more */
    uint64_t room[WEFT__EVENTS_MAX * 2];
};

/* What is taken, and where to. */
struct weft__take {
    enum {
        WEFT__TAKE_RECV,      /* from a socket */
        WEFT__TAKE_RECV_UNIX, /* from one that may carry descriptors */
        WEFT__TAKE_PEEK,      /* from either, and it stays there */
        WEFT__TAKE_SEND,      /* to a socket */
        WEFT__TAKE_SEND_SOON, /* likewise, from one buffer, perhaps together with others: see unsend */
        WEFT__TAKE_READ,   /* from any other fd: a terminal gives one line, however many it has */
        WEFT__TAKE_WRITE,  /* to any other fd */
        WEFT__TAKE_ACCEPT, /* a connection: its fd is the answer */
    } kind;
    const struct iovec *iov;
    int count;
    size_t bytes;               /* of iov in all */
    struct weft__address *from; /* of ACCEPT; may be NULL */
};

struct weft__driver_ops {
    const char *name;
    int (*open)(struct weft__port *port); /* 0, or why not; then nothing is open */
    void (*close)(struct weft__port *port);
    int (*add)(struct weft__port *port,
               struct weft__fdslot *slot); /* 0; -EPERM; -EEXIST; -ENOMEM; -ENOSPC */
    void (*del)(struct weft__port *port, struct weft__fdslot *slot);
    /* 0 or above: how many, also in `into`: `most` of them, 1 to WEFT__EVENTS_MAX, the others come with the next call, in
     * their order. -EINTR is 0. By several at once. timeout: 0 never sleeps, WEFT__NEVER. */
    int (*wait)(struct weft__port *port, struct weft__events *into, uint32_t most,
                int64_t timeout_ns);
    /* `own`: this thread is who the port's event is meant for; else it is passed on. Returns how many tasks were woken. */
    uint32_t (*deliver)(struct weft__port *port, const struct weft__events *events, bool own);
    /* `lesson`: its look is made, its bits are written. */
    ssize_t (*take)(struct weft__fdslot *slot, const struct weft__take *what,
                    struct weft__lesson *lesson);
    bool (*has)(struct weft__port *port);
    bool (*behind)(const struct weft__port *port);
    void (*arm)(struct weft__fdslot *slot, enum weft__side side, uint64_t bits);
    bool (*direct)(struct weft__fdslot *slot);
    ssize_t (*unsend)(struct weft__fdslot *slot);
    bool (*let_go)(struct weft__port *port, struct weft__fdslot *slot);
    void (*lose)(struct weft__port *port);
    void (*free)(struct weft__port *port);
};

/* Slots lie in chunks, each twice as large as the one before it, so that none ever moves. */
#define WEFT__PORT_CHUNKS 24
#define WEFT__PORT_FIRST  64

struct weft__port {
    WEFT__CACHE_ALIGNED _Atomic uint32_t
        fds;                     /* slots that are open, and file operations under way; 0: it need not be waited on */
    _Atomic bool open;                        /* kernel and event are there  [port-open] */
    int kernel;                  /* epoll or ring; written under the lock, before `open` */
    int event;                   /* likewise */
    struct weft__driver *driver; /* constant */
    void *own;                   /* the backend's; written under the lock, before `open` */
    uint32_t index;              /* constant: of its shard */
    bool lost;                   /* this is the child of a fork */
    _Atomic bool slept_in;       /* its worker waits in it, or is about to */
    WEFT__CACHE_ALIGNED struct weft__lock lock; /* rank driver; guards the rest, and opening */
    bool down;                                  /* its runtime has stopped */
    uint32_t free_first;                        /* slot + 1; 0: none */
    uint32_t made;                              /* slots ever */
    struct weft__files *_Atomic files; /* its ring for files; NULL: none yet, or none  [port-files] */
    _Atomic int files_error;           /* why it has none; 0: nobody has asked for it */
    struct weft__fdslot
        *_Atomic chunk[WEFT__PORT_CHUNKS]; /* NULL: not yet; made under the lock, read by events */
};

/* Is there somebody who comes by the port before he sleeps? */
enum weft__home {
    WEFT__HOME_NOBODY,
    WEFT__HOME_ANOTHER,
    WEFT__HOME_SELF, /* this thread */
    WEFT__HOME_SOON, /* this thread, and the polls before it comes by are short ones */
};

struct weft__driver {
    const struct weft__driver_ops *ops; /* constant, as all up to ports */
    void (*stir)(struct weft__driver *driver,
                 uint32_t port); /* its first fd, or it is behind: who turns it looks */
    void (*calm)(struct weft__driver *driver); /* a port has lost its last one */
    enum weft__home (*home)(struct weft__driver *driver, uint32_t port);
    void *rt; /* those three alone touch it: under a port's lock or its ring's, or while the runtime has something under way; not once the port is down */
    bool files_wanted; /* by rings (files.h) */
    bool turned_by_others; /* by threads that are not the runtime's, and may end at any time */
    uint32_t port_count;
    struct weft__port *ports;
    _Atomic uint32_t next_port;  /* where the next fd of nobody in particular goes */
    _Atomic uint32_t references; /* its runtime, and every open slot  [driver-ref] */
};

extern const struct weft__driver_ops weft__driver_epoll;
extern const struct weft__driver_ops weft__driver_uring;

/* Would that backend work here? Returns 0, or the negative errno that says why not. */
int weft__driver_uring_probe(void);

/* ---- by the runtime ---- */

int weft__driver_new(const struct weft__driver_ops *ops, uint32_t port_count, struct weft__driver **into);

/* All its ports now, and not each with its first fd: what the kernel refuses later does not matter any more. Returns 0; or the first that failed, and the driver is
 * good for weft__driver_stop alone. */
int weft__driver_open(struct weft__driver *driver);

/* No thread of the runtime's is there any more. Who still waits for an fd is told -ESHUTDOWN. */
void weft__driver_stop(struct weft__driver *driver);

/* Takes the runtime's reference. */
void weft__driver_let_go(struct weft__driver *driver);

/* In the child of a fork. */
void weft__driver_lose(struct weft__driver *driver);

/* Nothing to wait for there? A load, and what most turns of most programs ask. */
static inline bool weft__port_idle(const struct weft__port *port)
{
    return load_relaxed(&port->fds) == 0; /* relaxed: who adds the first stirs its worker */
}

/* The same for who moves a clock that stands: if not, whoever has counted the last one out is seen awake. */
static inline bool weft__port_is_watched(const struct weft__port *port)
{
    return load_acquire(&port->fds) > 0; /* [port-calm] with count_down */
}

/* So many less. True: those were the last. */
static inline bool weft__port_count_down(struct weft__port *port, uint32_t count)
{
    /* [port-calm] with is_watched: this thread is awake, and whom it is about to wake may have timers that are over by that */
    return fetch_sub_release(&port->fds, count) == count;
}

/* One turn without sleeping: fetch up to `most`, deliver. Returns how many tasks were woken. */
uint32_t weft__port_turn(struct weft__port *port, uint32_t most, bool own);

/* ---- by io and net ---- */

/* The port for an fd that is opened by this thread now. `spread`: of several that come at once, the next of all ports.
 * `rt`: NULL is the current one. In sched/io.c. Returns 0; -ENXIO: there is no runtime; -ECHILD; -ESHUTDOWN. */
int weft__driver_here(struct weft_rt *rt, bool spread, struct weft__port **into);

/* Watch `fd`, and take it if that succeeds. The slot's face is zero. Returns 0; -EPERM: the kernel has no readiness for
 * it, a plain file; -EEXIST: it is watched already; -ENOMEM; -ENOSPC; -EMFILE for the port's own; -ESHUTDOWN; -ECHILD. */
int weft__driver_add(struct weft__port *port, int fd, struct weft__fdslot **into);

/* The port of the worker that this thread is; NULL: it is none. In sched/io.c. */
struct weft__port *weft__driver_mine(void);

/* For a port's own: watch an fd that does not count, and that stays the caller's. Its slot lives as long as the port. Returns as weft__driver_add. */
int weft__port_watch(struct weft__port *port, int fd, struct weft__fdslot **into);

/* Something is under way whose end the kernel will tell this port; so many have ended. Its runtime is not stopping. */
void weft__port_count_in(struct weft__port *port);
void weft__port_count_out(struct weft__port *port, uint32_t count);

/* Ends the slot: waiters are answered -EBADF, and the fd goes with the last operation. Never waits. */
void weft__driver_close(struct weft__fdslot *slot);

/* Before that, by who has been told what is closed, and where: for the message if it was closed before. `at` NULL: who is called by
 * another that has said so. Kept for the thread, since streams are closed through tables that tell no place. */
void weft__driver_closes(const char *what, const char *at);

/* Ends the slot and gives the fd back, still open. Returns it; -EBUSY: an operation is under way; -EBADF. */
int weft__driver_release(struct weft__fdslot *slot);

/* The last operation of a closed slot has left it. */
void weft__driver_dispose(struct weft__fdslot *slot);

static inline bool weft__driver_is_lost(const struct weft__fdslot *slot)
{
    return __builtin_expect(slot->port->lost, 0);
}

/* An operation is over; the last one of a closed slot ends it. In the child of a fork there is nothing to leave: the slot is a copy, whose lock may be held by nobody. */
static inline void weft__driver_leave(struct weft__fdslot *slot, uint32_t as)
{
    if (weft__driver_is_lost(slot)) return;
    if (__builtin_expect(weft__fdslot_finish(slot, as, 0, 0), 0)) weft__driver_dispose(slot);
}

static inline ssize_t weft__driver_take(struct weft__fdslot *slot, const struct weft__take *what,
                                        struct weft__lesson *lesson)
{
    return slot->port->driver->ops->take(slot, what, lesson);
}

/* Likewise, by one who neither looks nor clears itself. */
static inline ssize_t weft__driver_try(struct weft__fdslot *slot, const struct weft__take *what)
{
    struct weft__lesson lesson = {.seen = weft__fdslot_look(slot)};
    ssize_t r = weft__driver_take(slot, what, &lesson);
    if (lesson.bits) weft__fdslot_clear(slot, lesson.seen, lesson.bits);
    return r;
}

/* The writer gives up. -EAGAIN: nothing was sent by its last try, nor will be; else what was. */
static inline ssize_t weft__driver_unsend(struct weft__fdslot *slot)
{
    const struct weft__driver_ops *ops = slot->port->driver->ops;
    return ops->unsend && !slot->port->lost ? ops->unsend(slot) : -EAGAIN;
}

static inline void weft__driver_arm(struct weft__fdslot *slot, enum weft__side side, uint64_t bits)
{
    const struct weft__driver_ops *ops = slot->port->driver->ops;
    if (ops->arm) ops->arm(slot, side, bits);
}

/* Whoever reads the fd by calls of its own asks before each. */
static inline bool weft__driver_direct(struct weft__fdslot *slot)
{
    const struct weft__driver_ops *ops = slot->port->driver->ops;
    return !ops->direct || ops->direct(slot);
}

/* Is that so by itself, whatever happens? */
static inline bool weft__driver_always_direct(const struct weft__fdslot *slot)
{
    return !slot->port->driver->ops->direct;
}

/* For backends: a slot that was not let go of is free now. `locked`: the port's lock is held. */
void weft__port_give_back(struct weft__fdslot *slot, bool locked);

/* Chunk k begins at slot FIRST * (2^k - 1). */
static inline uint32_t weft__chunk_of(uint32_t index)
{
    return (uint32_t)(31 - __builtin_clz(index + WEFT__PORT_FIRST)) -
           (uint32_t)__builtin_ctz(WEFT__PORT_FIRST);
}

static inline uint32_t weft__chunk_slots(uint32_t chunk)
{
    return (uint32_t)WEFT__PORT_FIRST << chunk;
}

/* For backends: the slot of a token. NULL: there never was one. */
static inline struct weft__fdslot *weft__port_slot(struct weft__port *port, uint32_t index)
{
    uint32_t chunk = weft__chunk_of(index);
    if (chunk >= WEFT__PORT_CHUNKS) return NULL;
    struct weft__fdslot *slots =
        load_acquire(&port->chunk[chunk]); /* [port-chunk] with make_slot */
    return slots ? &slots[index + WEFT__PORT_FIRST - weft__chunk_slots(chunk)] : NULL;
}

#endif
