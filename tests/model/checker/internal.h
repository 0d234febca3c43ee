/* SPDX-License-Identifier: MIT
 *
 * internal - what the files of the checker share.
 *
 * engine.c   fibers, scheduling points, the search (depth-first, sleep sets, PCT), replay
 * memory.c   the memory model: store histories, views, what a load may see and where a store may go
 * order.c    the seq_cst part: which seq_cst events are ordered, and that the order has no cycle
 * plain.c    plain memory, allocation, races, use after free, leaks
 * sync.c     locks, futexes, yield
 * main.c     cases, mutants, weakened orders, printing
 */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "model.h"
#include "model_atomic.h"

#define LOCS_MAX     96             /* distinct addresses in one execution */
#define STORES_MAX   96             /* stores to one address in one execution */
#define VIEWS_MAX    2048           /* stores that carry a view, in one execution */
#define SC_MAX       64             /* seq_cst events in one execution: one bit each */
#define STEPS_MAX    5000           /* of one execution; more is a loop without model_yield */
#define CHOICES_MAX  8192
#define STACK_BYTES  (256 * 1024)
#define KEY_GAP      (1u << 14)     /* between two stores, so that others fit in between */

/* An access as a number: stores of a location are keyed in modification order; a write at key k is 2k, a read from it 2k+1. Then a is before b in
 * "extended coherence order" (rf, mo, fr and what follows from them) just if code(a) < code(b). */
typedef uint32_t code;

/* What a thread knows: everything that happens before the point it is at. */
struct view {
    uint32_t clock[MODEL_THREADS_MAX]; /* events of each thread that happen before */
    uint64_t sc;                    /* seq_cst events that happen before */
    uint64_t departed;              /* those of them whose thread had gone on to another location before it got here (see order.c) */
    unsigned locs;                  /* how much of the arrays is in use; the rest counts as zero */
    code seen[LOCS_MAX];            /* the last access of each location that happens before */
    code wrote[LOCS_MAX];           /* the last write of it */
};

struct store {
    uint64_t value;
    uint32_t key;
    struct view *view;              /* what an acquiring reader learns; NULL: nothing */
    const struct model_site *at;    /* NULL: the initial value */
    unsigned thread;
    unsigned step;
    bool read_by_rmw;               /* an RMW took this value: nothing may come between the two */
};

struct loc {
    const volatile void *address;
    size_t bytes;
    const char *name;
    unsigned index;
    bool plain;
    bool dead;                      /* freed */
    unsigned count;
    struct store *mo[STORES_MAX];   /* in modification order */
    uint32_t touched[MODEL_THREADS_MAX]; /* clock of each thread's last access */
    uint32_t written[MODEL_THREADS_MAX]; /* clock of each thread's last plain write */
};

enum op_kind { OP_NONE, OP_LOAD, OP_WRITE, OP_LOCK, OP_UNLOCK, OP_JOIN, OP_YIELD, OP_SLEEP };

/* What a thread is about to do. */
struct op {
    enum op_kind kind;
    const volatile void *address;
};

enum thread_state { THREAD_NONE, THREAD_LIVE, THREAD_DONE };

struct thread {
    void *sp;
    char *stack;
    void (*run)(void *);
    void *arg;
    enum thread_state state;
    bool starting;                  /* runs to its first scheduling point, then back to its starter */
    unsigned starter;
    struct op op;                   /* pending while it is not running */
    struct view now;                /* what happens before its next event */
    struct view acquirable;         /* views of what it read relaxed: an acquire fence makes them its own */
    struct view released;           /* its view at the last release fence: relaxed stores carry it */
    uint32_t fresh[LOCS_MAX];       /* keys below this are too old after a yield; not a matter of happens-before */
    unsigned fresh_locs;
    bool yielded;
    bool saw_stale;                 /* since the last yield some load returned an old value */
    bool loaded;                    /* since the last yield there was a load */
    uint64_t first_load_writes;     /* the count of writes at that time */
    int priority;                   /* PCT */
    /* futex */
    const volatile void *sleeps_on;
    bool woken;
    bool timed;
    /* order.c: own seq_cst accesses, and what had departed at the last event and at the last event elsewhere */
    uint64_t own_sc;
    const struct loc *last_loc;
    uint64_t departed_last;
    uint64_t departed_other;
};

/* ---- engine.c ---- */
extern struct thread model__threads[MODEL_THREADS_MAX];
extern unsigned model__thread_count;
extern unsigned model__current;
extern unsigned model__step;
extern uint64_t model__writes;      /* so far in this execution; what spinning threads wait for */
extern bool model__tracing;
extern struct model_result model__result;
extern const struct model_case *model__case;
extern uint64_t model__seed;
extern const char *model__replay;   /* a path, or NULL */
extern unsigned model__spurious_left;

static inline struct thread *self(void)
{
    return &model__threads[model__current];
}

void model__point(enum op_kind kind, const volatile void *address); /* another thread may run here */
void model__touch(enum op_kind kind, const volatile void *address); /* this step also did that */
unsigned model__choose(unsigned n);
bool model__unbounded(void);
__attribute__((noreturn, format(printf, 1, 2))) void model__fail(const char *format, ...);
__attribute__((noreturn)) void model__prune(void);
__attribute__((format(printf, 2, 3))) void model__trace(const struct model_site *at, const char *format, ...);

/* ---- memory.c ---- */
extern struct loc model__locs[LOCS_MAX];
extern unsigned model__loc_count;
void model__memory_reset(void);
struct loc *model__loc(const volatile void *address, size_t bytes, bool plain);
struct loc *model__loc_if_known(const volatile void *address);
uint64_t model__read(struct loc *l, uint32_t floor_key, const struct model_site *at); /* as a relaxed load, without a scheduling point */
void model__view_join(struct view *into, const struct view *from);
void model__view_copy(struct view *into, const struct view *from);
code model__seen(const struct view *v, const struct loc *l);
void model__freshen(struct thread *t);
void model__tick(void);             /* an event is over */

/* ---- order.c ---- */
void model__order_reset(void);
void model__order_fence(void);
void model__order_access(struct loc *l, bool reads, uint32_t read_key, bool writes, uint32_t write_key, bool seq_cst);
void model__order_elsewhere(void);  /* an event without a location */

/* ---- plain.c ---- */
void model__plain_reset(void);
void model__plain_end(void);
void model__touch_loc(struct loc *l);
void model__check_not_freed(const volatile void *address, size_t bytes);

/* ---- sync.c ---- */
void model__sync_reset(void);
bool model__lock_free(const volatile void *lock);

/* ---- main.c: orders made weaker ---- */
enum weaken { WEAKEN_ACQUIRE = 1, WEAKEN_RELEASE = 2, WEAKEN_SEQ_CST = 4, WEAKEN_FENCE = 8 };
extern const struct model_site *model__weak_site;
extern enum weaken model__weak_how;
extern bool model__collecting;
void model__collect(const struct model_site *at, enum model_order order, bool fence);

static inline bool acquires(enum model_order order)
{
    return order == MODEL_acquire || order == MODEL_acq_rel || order == MODEL_seq_cst;
}

static inline bool releases(enum model_order order)
{
    return order == MODEL_release || order == MODEL_acq_rel || order == MODEL_seq_cst;
}

#endif
