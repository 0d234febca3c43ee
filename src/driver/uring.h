/* SPDX-License-Identifier: MIT
 *
 * uring - the backend that stands on io_uring: requests that go on for ever, and what they have brought.
 *
 * A slot has at most three requests in the kernel for long, each asked for when somebody is about to wait and it is not there yet (arm), and
 * each *multishot*: it answers again and again until something ends it.
 *     POLL_READ    for whatever is read by calls: reports readiness, as epoll does, edge by edge
 *     POLL_WRITE   likewise, for whoever found the fd full, or waits for a connection
 *     FETCH        of a stream: receives into the port's buffers; of a listener: accepts. What it has brought lies in the slot until it is taken
 * And some that are over when they are submitted: SEND, of a small write (uring_send.c); PLACE and UNPLACE, of its socket in the ring's table (uring_place.c).
 * A request and its answers:
 *     NONE -> ASKED       [arm]        in the port's list of slots that want something
 *     ASKED -> KERNEL     [flush]      submitted
 *     KERNEL -> KERNEL    [answer]     more will come (IORING_CQE_F_MORE); what it brought is kept, the side is ready
 *     KERNEL -> NONE      [last answer]  the side is ready, whatever it said: who waits tries again, and arms anew
 *     ASKED -> NONE       [stop]       it never reached the kernel
 *     KERNEL -> KERNEL    [stop]       a cancel is submitted; its last answer comes
 * So it does not matter why a request ended: no buffers, no descriptors, a cancel, or that the thread that submitted it has (the kernel then cancels
 * what was that thread's). A try by a system call says what is the case, and that can be made whenever FETCH is in NONE and the slot is empty.
 *
 * ORDER  While FETCH is asked for or in the kernel nobody else reads the fd, so bytes come in one order: that of the answers, which are put into
 * their slots as they are fetched, under the ring's lock. An error that it brought was taken from the socket: it is kept, behind the data.
 * BOUND  A FETCH of a stream ends by itself when it has brought WEFT__URING_UNREAD bytes; by a kernel before 6.17, which does not know how, it is stopped when the slot holds
 * so many, as that of a listener is at WEFT__URING_UNACCEPTED connections: what comes before the stop takes effect is kept, too. Emptied, it is asked for anew by whoever waits. A stream that is read in large pieces is polled instead: a copy less, and larger pieces.
 * FLOOD  What is fetched ahead of thousands of sockets at once has left the caches when its task runs, and the socket with it, which its send needs again. So while there are more answers
 * than buffers, a stream is not fetched ahead any more, nor polled in the ring: its request is stopped with the next answer, and then it is watched by an epoll of the port's (uring_flood.c), and read and written by calls when its task is there. When the
 * flood is over it is tried with its next event, and a read of little makes it fetch again.
 * NOTHING IS LOST  Arms and stops are bits in the slot, not entries of a queue that may be full: whoever comes by (wait) submits those that have
 * room. Answers that have no place are kept by the kernel. Entries that it did not take are taken back, and are bits again.
 * WHO SUBMITS  The kernel hands a request's answers to the thread that submitted it: asleep elsewhere it is disturbed for each, stuck it holds them up. So the worker whose port it is
 * submits all requests: when it comes by, before it sleeps, many at once. Others leave theirs in the list, and signal the port's event. Cancels and UNPLACE are submitted at once, by
 * whoever closes. A current-thread runtime has no such worker: everybody submits, and stirs whoever turns it if the kernel does not take it all (behind, driver.h).
 * CLOSE  stops all three, and leaves the place. The fd's number is free at once; the kernel has the file until the last answers have come, and the slot is not used again before that
 * (let_go): an answer never finds another connection.
 *
 * Threads: any. Locks: the ring's (rank slot), under the port's or alone; it guards everything but the sleep in the ring. A request takes it three times, nearly always by the worker
 * whose port it is, so it is lent to that one (sys/bias.h). It is held across a submit, for up to some hundreds of microseconds: others sleep meanwhile.
 * Pairs: [uring-asked] a last answer -> who reads: what it brought is seen before it is seen to be over, so that a call does not overtake it.
 * Rejected: DEFER_TASKRUN and SINGLE_ISSUER (one thread alone could submit: others close fds, and a current-thread runtime is turned by whoever calls);
 * receives and sends with the caller's own buffers (a wait that is given up would have to wait for the kernel, and a loser in a select would have taken);
 * sends that wait in the kernel for room (the buffer is the caller's: as before); SQPOLL (a core for it).
 */
#ifndef WEFT_DRIVER_URING_H
#define WEFT_DRIVER_URING_H

#include "driver/driver.h"
#include "sys/ringbuf.h"

/* Bits: which of a slot's requests. */
enum {
    WEFT__URING_POLL_READ = 1,
    WEFT__URING_POLL_WRITE = 2,
    WEFT__URING_FETCH = 4,
    WEFT__URING_SEND = 8,
    WEFT__URING_PLACE = 32, /* 16: of tokens */
    WEFT__URING_UNPLACE = 64,
    WEFT__URING_EPOLL = 128, /* no request: in the port's epoll */
    WEFT__URING_STOPPABLE = 15 | WEFT__URING_EPOLL,
    WEFT__URING_ALL = 15 | WEFT__URING_PLACE | WEFT__URING_UNPLACE, /* in tokens */
};

/* Behind the slot: slot->more. All under the ring's lock, unless it says otherwise. What every request needs is on its first line. */
struct weft__uring_slot {
    struct weft__fdslot *slot;
    uint64_t token; /* slot and generation, from its opening on */
    _Atomic uint8_t
        asked; /* not in NONE. Written under the lock [uring-asked]; elsewhere a hint: what ends it, as the last answer does, clears it before the side is made ready */
    uint8_t to_submit; /* in ASKED */
    uint8_t to_cancel;
    uint8_t cancelled; /* to_cancel, or the cancel is on its way */
    bool capped;       /* FETCH was asked for with its bound */
    bool listed;       /* among the port's that want something */
    bool closed;
    bool left;             /* nobody but the kernel has it */
    bool placed;           /* it is in the ring's table */
    bool has_sent;         /* the answer of SEND is here */
    _Atomic bool by_calls; /* relaxed: FETCH is not asked for any more; for good */
    _Atomic bool in_bulk;  /* relaxed: the last read brought much; a hint */
    _Atomic bool sending; /* SEND was asked for, and its answer is not taken: relaxed, the writer's own */
    _Atomic bool heard;   /* something was read since the last one: relaxed, a hint */
    _Atomic bool
        holds; /* something that FETCH has brought; elsewhere a hint for whoever takes: he may be early, and is woken */
    uint8_t sends; /* so many were handed in: counted up to WEFT__URING_PLACE_AFTER */
    struct weft__uring_slot *next;

    /* -- what FETCH has brought -- */
    uint32_t first, last; /* buffers, chained in the port's `chain`; of `count` */
    uint32_t count;
    uint32_t offset; /* in the first: so much is taken */
    uint32_t unread; /* bytes */
    int error;       /* behind the data */

    int *fds; /* connections: a ring of `fds_room`, from fds_first on */
    uint32_t fds_first, fds_count, fds_room;

    /* -- SEND -- */
    int32_t sent; /* which answer */
    uint32_t send_bytes;
    const void *send_from;
};

_Static_assert(offsetof(struct weft__uring_slot, fds) == WEFT__CACHE_LINE, "the first line is full");

/* Behind the port: port->own. */
struct weft__uring {
    struct weft__lock lock;
    uint32_t row;                          /* of the lock (sys/bias.h) */
    struct weft__ring ring;                /* guarded, but for its sleep */
    struct weft__ringbuf buffers;          /* not open: streams are polled */
    uint32_t chain[WEFT__URING_BUFFERS];   /* the buffer behind this one, of the same slot */
    uint32_t bytes[WEFT__URING_BUFFERS];   /* in it */
    struct weft__uring_slot *first, *last; /* that want something */
    _Atomic bool pending; /* there are such: a hint for whoever has no lock, and comes again */
    bool down;
    _Atomic bool flood; /* relaxed: a hint: more has come than is looked at soon */
    bool no_cap;                    /* the kernel cannot bound a FETCH by itself: before 6.17 */
    _Atomic bool no_fetch_stream;   /* the kernel does not know it; relaxed: a hint */
    _Atomic bool no_fetch_listener; /* likewise */
    _Atomic bool
        event_asked; /* the request that watches the port's event is in the kernel; elsewhere a hint */
    int epoll; /* of floods; -1: none. Constant while the port is open */
    _Atomic bool no_watch; /* relaxed: a hint: there is none, or it takes no more for now */
    _Atomic uint32_t in_epoll; /* slots; elsewhere a hint, as the next */
    _Atomic bool epoll_asked; /* the request that watches it is in the kernel */
    uint32_t calm_looks; /* so often in a row a flood has not been seen to go on */
    uint32_t in_kernel; /* requests */
    uint32_t places;    /* of its table; 0: the kernel has given none */
    uint64_t *watched;  /* fds, a bit each */
    uint32_t watched_words;
};

/* ---- the lock ---- */

static inline void weft__uring_lock(struct weft__uring *u)
{
    /* No meeting, if it is taken back (task/here.h): that is once in a long row. */
    (void)weft__bias_take(&u->lock, weft__waitlist_me(), WEFT__BIAS_RING);
}

static inline void weft__uring_unlock(struct weft__uring *u)
{
    uint8_t me = weft__waitlist_me();
    if (weft__bias_has_word(&u->lock, me, WEFT__BIAS_RING))
        weft__bias_count(&u->lock, &u->row, me);
    weft__bias_drop(&u->lock, me, WEFT__BIAS_RING);
}

/* ---- requests (uring_ask.c). Holds: the ring's lock ---- */

/* The words of requests: slot and which of its requests; a cancel of it; the port's event; what takes all back. */
#define WEFT__URING_TOKEN(us, which) ((uint64_t)(us)->slot->index << 8 | (which))
#define WEFT__URING_TOKEN_CANCEL     UINT64_C(0x10)
#define WEFT__URING_TOKEN_EVENT      UINT64_MAX
#define WEFT__URING_TOKEN_CANCEL_ALL (UINT64_MAX - 1)
#define WEFT__URING_TOKEN_EPOLL      (UINT64_MAX - 2)
#define WEFT__URING_TOKEN_OWN        WEFT__URING_TOKEN_EPOLL /* from here on: of no slot */

static inline struct weft__uring_slot *weft__uring_more_of(const struct weft__fdslot *slot)
{
    return slot->more;
}

static inline uint8_t weft__uring_asked(const struct weft__uring_slot *us)
{
    return load_acquire(&us->asked); /* [uring-asked] with set_asked: what was kept until then */
}

static inline void weft__uring_set_asked(struct weft__uring_slot *us, uint32_t which)
{
    store_release(&us->asked,
                  (uint8_t)which); /* [uring-asked] with who reads: what is kept is noted */
}

void weft__uring_ask(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which);

/* Those of `which` that are asked for, and not submitted, are not any more. */
void weft__uring_unask(struct weft__uring_slot *us, uint32_t which);

/* Those of `which` that are there: unasked, or to be cancelled. */
void weft__uring_stop(struct weft__uring *u, struct weft__uring_slot *us, uint32_t which);

/* The list of slots that want something. */
void weft__uring_list_it(struct weft__uring *u, struct weft__uring_slot *us);
void weft__uring_unlist(struct weft__uring *u, struct weft__uring_slot *us);
struct weft__uring_slot *weft__uring_unlist_first(struct weft__uring *u);

/* Submit what is wanted. `sleeps`: somebody will sleep in the port, and its event is wanted, too. */
void weft__uring_flush(struct weft__port *port, struct weft__uring *u, bool sleeps);

/* A slot has asked for something: whoever is at home submits it. */
void weft__uring_hand_in(struct weft__port *port, struct weft__uring *u);

/* Is this the port's worker? */
bool weft__uring_at_home(const struct weft__port *port, const struct weft__uring *u);

/* This slot's alone, at once. */
void weft__uring_submit_now(struct weft__port *port, struct weft__uring *u,
                            struct weft__uring_slot *us);

struct weft__uring_slot *weft__uring_slot_of_token(struct weft__port *port, uint64_t token);

/* ---- answers (uring_answer.c). Holds: the ring's lock ---- */

/* What is fetched: a slot's token and bits of its word, or one of these. */
#define WEFT__URING_FETCHED_EVENT (UINT64_C(1) << 63)
#define WEFT__URING_FETCHED_FREE  (UINT64_C(1) << 62) /* the slot is nobody's any more: it is given back */

/* Up to `most` answers. Returns how many there were; what they say of slots goes into `into`. */
uint32_t weft__uring_fetch(struct weft__port *port, struct weft__uring *u,
                           struct weft__events *into, uint32_t most);

static inline void weft__uring_put(struct weft__events *into, uint64_t token, uint64_t what)
{
    into->room[2 * into->count] = token;
    into->room[2 * into->count + 1] = what;
    into->count++;
}

/* ---- floods (uring_flood.c). Holds: the ring's lock ---- */

void weft__uring_flood_open(struct weft__port *port, struct weft__uring *u);
void weft__uring_flood_close(struct weft__uring *u);

/* Answers were fetched: is there a flood? */
void weft__uring_note_flood(struct weft__uring *u);

/* Is it to be? Without the lock it is a hint. */
static inline bool weft__uring_may_watch(const struct weft__uring *u, const struct weft__uring_slot *us)
{
    /* relaxed, both: hints */
    return load_relaxed(&u->flood) && !load_relaxed(&u->no_watch) && us->slot->shape == WEFT__SHAPE_STREAM;
}

/* The slot is in the epoll. False: it could not be, or cannot be now. */
bool weft__uring_watch(struct weft__uring *u, struct weft__uring_slot *us);
void weft__uring_unwatch(struct weft__uring *u, struct weft__uring_slot *us);

/* What it has for slots, beside what is there, up to `most` in all. */
void weft__uring_look(struct weft__port *port, struct weft__uring *u, struct weft__events *into,
                      uint32_t most);

/* Without the lock it is a hint. */
static inline bool weft__uring_must_look(const struct weft__uring *u)
{
    /* relaxed, all: see there */
    return load_relaxed(&u->in_epoll) > 0 && (load_relaxed(&u->flood) || !load_relaxed(&u->epoll_asked));
}

/* ---- sends (uring_send.c). Without the lock ---- */

/* SEND and SEND_SOON of the verb `take`. */
ssize_t weft__uring_send(struct weft__fdslot *slot, const struct weft__take *what,
                         struct weft__lesson *lesson);
ssize_t weft__uring_unsend(struct weft__fdslot *slot);

static inline bool weft__uring_is_sending(const struct weft__uring_slot *us)
{
    /* relaxed: the writer's own; another that waits beside it has seen the slot's word, which it wrote behind it [fd-ready] */
    return load_relaxed(&us->sending);
}

/* ---- places (uring_place.c). Holds: the ring's lock ---- */

/* The table of a ring that is opened. Returns how many; 0: sends name their sockets by number. */
uint32_t weft__uring_places(const struct weft__port *port, const struct weft__ring *ring);

/* One is handed in. */
void weft__uring_count_send(struct weft__uring *u, struct weft__uring_slot *us);

/* The answer of PLACE. */
void weft__uring_place_answered(struct weft__uring_slot *us, int result);

/* Its file is to be closed. */
void weft__uring_leave_place(struct weft__uring *u, struct weft__uring_slot *us);

/* ---- what has come (uring_fetched.c). Holds: the ring's lock ---- */

/* An answer of FETCH, that is or is not its last. */
void weft__uring_keep(struct weft__uring *u, struct weft__uring_slot *us,
                      const struct weft__ring_done *done);

/* Too much for now? */
bool weft__uring_is_full(const struct weft__uring_slot *us);

/* The slot is closed: buffers go back, connections are closed. */
void weft__uring_drop(struct weft__uring *u, struct weft__uring_slot *us);

/* Something that was kept: bytes, or a connection's fd, or the error behind them. -EAGAIN: there is nothing. */
ssize_t weft__uring_give(struct weft__uring *u, struct weft__uring_slot *us,
                         const struct weft__take *what);

#endif
