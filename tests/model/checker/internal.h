/* SPDX-License-Identifier: MIT
 *
 * internal - what the files of the checker share.
 *
 * engine.c   one execution: threads, scheduling points, failing
 * fiber.c    stacks and the switch between them
 * search.c   all executions: paths of choices, sleep sets, PCT, replay
 * memory.c   the memory model: store histories, views, what a load may see and where a store may go
 * round.c    spinning: when a loop may go on, and what it then sees
 * order.c    the seq_cst part: which seq_cst events are ordered, and that the order has no cycle
 * plain.c    plain memory, allocation, races, use after free, leaks, names
 * sync.c     locks, futexes, yield
 * main.c     cases, mutants, weakened orders, printing
 */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "model.h"
#include "model_atomic.h"

/* Bounds of one execution. Each is reported by name when it is reached; doubled, an execution costs more memory, and nothing else breaks, except: */
#define LOCS_MAX     128            /* distinct addresses: at most 64 * LOC_WORDS */
#define LOC_WORDS    2
#define STORES_MAX   96             /* stores to one address: times KEY_GAP must fit a code */
#define VIEWS_MAX    2048           /* stores that carry a view */
#define SC_MAX       64             /* seq_cst events: one bit each */
#define STEPS_MAX    5000           /* more is an endless loop */
#define CHOICES_MAX  8192           /* struct model_result has room for their text */
#define SPINS_MAX    16             /* rounds of a spinning thread while nobody else can run; doubled, livelocks print twice as much */
#define KEY_GAP      (1u << 24)     /* between two stores, so that others fit in between: 24 of them at least */

/* An access as a number: stores of a location are keyed in modification order; a write at key k is 2k, a read from it 2k+1. Then a is before b in
 * "extended coherence order" (rf, mo, fr and what follows from them) just if code(a) < code(b). */
typedef uint32_t code;

_Static_assert(2ull * KEY_GAP * (STORES_MAX + 1) < UINT32_MAX, "keys of all stores fit a code");
_Static_assert(LOCS_MAX <= 64 * LOC_WORDS, "sets of locations are words");

/* What a thread knows: everything that happens before the point it is at. */
struct view {
    uint32_t clock[MODEL_THREADS_MAX]; /* events of each thread that happen before */
    uint64_t sc;                    /* seq_cst events that happen before */
    uint64_t departed;              /* those of them whose thread had gone on to another location before it got here (see order.c) */
    unsigned locs;                  /* how much of the array is in use; the rest counts as zero */
    struct known {
        code seen;                  /* the last access of the location that happens before */
        code wrote;                 /* the last write of it */
    } loc[LOCS_MAX];
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
    const char *name;               /* NULL: none */
    unsigned index;
    bool plain;
    bool dead;                      /* freed */
    unsigned count;
    uint64_t overlaps[LOC_WORDS];   /* of plain memory: other locations that share bytes with it */
    uint32_t touched[MODEL_THREADS_MAX]; /* clock of each thread's last access */
    uint32_t written[MODEL_THREADS_MAX]; /* clock of each thread's last plain write */
    struct store *mo[STORES_MAX];   /* in modification order */
};

enum op_kind { OP_NONE, OP_LOAD, OP_WRITE, OP_LOCK, OP_UNLOCK, OP_JOIN, OP_YIELD, OP_SLEEP, OP_MEMBARRIER };

/* What a thread is about to do. */
struct op {
    enum op_kind kind;
    const volatile void *address;
};

enum thread_state { THREAD_NONE, THREAD_LIVE, THREAD_DONE };
enum outcome { COMPLETE, FAILED, PRUNED, AGAIN };

/* What a thread saw of a location in its present round (the stretch between two yields). */
struct look {
    uint32_t first_key;             /* of the store it read or wrote first */
    uint32_t last_key;              /* and last */
    uint64_t first_value;
    uint64_t last_value;
    uint64_t before;                /* if the thread wrote: the newest value before it did so first */
};

struct thread {
    void *sp;
    char *stack;
    void (*run)(void *);
    void *arg;
    enum thread_state state;
    bool starting;                  /* runs to its first scheduling point, then back to its starter */
    unsigned starter;
    struct op op;                   /* pending while it is not running */
    int priority;                   /* PCT */
    unsigned locks_held;
    /* the round: what yields and time-outs ask */
    uint64_t looked[LOC_WORDS];     /* locations with a look in this round */
    uint64_t wrote[LOC_WORDS];      /* those of them that it wrote */
    bool found_busy;                /* a lock, by model_try_lock */
    uint64_t found_busy_drops;      /* the count of unlocks at that time */
    bool let_through;               /* though nothing has changed, as nobody else can run */
    unsigned let_through_count;
    unsigned least_locs;            /* how much of `least` is in use */
    /* futex */
    const volatile void *sleeps_on;
    bool woken;
    bool timed;
    bool timed_out;                 /* once; the next time-out needs something new */
    /* order.c: own seq_cst accesses, and what had departed at the last event and at the last event elsewhere */
    uint64_t own_sc;
    const struct loc *last_loc;
    uint64_t departed_last;
    uint64_t departed_other;
    /* cleared by their counts, not by memset */
    struct view now;                /* what happens before its next event */
    struct view acquirable;         /* views of what it read relaxed: an acquire fence makes them its own */
    struct view released;           /* its view at the last release fence: relaxed stores carry it */
    struct look look[LOCS_MAX];
    uint32_t least[LOCS_MAX];       /* keys below this are too old after a yield; not a matter of happens-before */
};

/* ---- engine.c ---- */
extern struct thread model__threads[MODEL_THREADS_MAX];
extern unsigned model__thread_count;
extern unsigned model__current;
extern unsigned model__step;
extern bool model__tracing;
extern bool model__hide_setup;      /* schedules begin with the first thread */
extern struct model_result model__result;
extern const struct model_case *model__case;
extern uint64_t model__seed;
extern const char *model__replay;   /* a path, or NULL */
extern unsigned model__spurious_left;

static inline struct thread *self(void)
{
    return &model__threads[model__current];
}

void model__run_reset(void);
enum outcome model__execute(void);
void model__point(enum op_kind kind, const volatile void *address); /* another thread may run here */
bool model__point_at_unlock(void);
void model__want_points_at_unlock(void); /* may end the execution, to begin the search again */
__attribute__((noreturn, format(printf, 1, 2))) void model__fail(const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2))) void model__fail_limit(const char *format, ...); /* of the checker, not of what is checked */
__attribute__((noreturn)) void model__prune(void);
__attribute__((format(printf, 2, 3))) void model__trace(const struct model_site *at, const char *format, ...);

/* ---- search.c ---- */
void model__search_reset(void);
unsigned model__choose(unsigned n);
unsigned model__pick(unsigned enabled);
void model__step_is(enum op_kind kind, const volatile void *address);
int model__priority_new(void);
void model__path_text(char *into, size_t bytes);

/* ---- memory.c ---- */
extern struct loc model__locs[LOCS_MAX];
extern unsigned model__loc_count;
void model__memory_reset(void);
struct loc *model__loc(const volatile void *address, size_t bytes, bool plain);
struct loc *model__loc_if_known(const volatile void *address);
/* A load without a scheduling point, of nothing older than least_key. */
uint64_t model__read(struct loc *l, uint32_t least_key, enum model_order order, const struct model_site *at);
void model__view_join(struct view *into, const struct view *from);
void model__view_copy(struct view *into, const struct view *from);
code model__seen(const struct view *v, const struct loc *l);
unsigned model__first_from(const struct loc *l, uint32_t key); /* index of the oldest store not before key */
void model__tick(void);             /* an event is over */

/* ---- round.c ---- */
void model__note_look(const struct loc *l, const struct store *s);
void model__note_write(const struct loc *l); /* before the store is made */
bool model__round_worthwhile(const struct thread *t); /* could another round differ from the last? */
void model__round_new(struct thread *t);

/* ---- order.c ---- */
void model__order_reset(void);
void model__order_fence(void);
unsigned model__order_newest(void); /* the fence just made */
void model__order_before(unsigned fence, unsigned other); /* one is before the other, for a reason that the axioms do not know */
void model__order_access(struct loc *l, bool reads, uint32_t read_key, bool writes, uint32_t write_key, bool seq_cst);
void model__order_plain(const struct loc *l);
void model__order_elsewhere(void);  /* an event without a location */

/* ---- plain.c ---- */
void model__plain_reset(void);
void model__plain_end(void);
void model__touch_loc(struct loc *l);
void model__check_not_freed(const volatile void *address, size_t bytes);
bool model__ordered(uint32_t clock, unsigned thread); /* does that thread's event happen before this one's next? */
const char *model__name_of(const volatile void *address); /* NULL: none */

/* ---- sync.c ---- */
void model__sync_reset(void);
bool model__lock_free(const volatile void *lock);
void model__check_no_lock_held(void);
void model__free_locks(const char *memory, size_t bytes); /* that lie there */
extern uint64_t model__drops;       /* unlocks so far in this execution */

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
