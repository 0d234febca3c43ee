/* SPDX-License-Identifier: MIT
 *
 * model - a model checker for lock-free C: runs a small concurrent test in every way the C11 memory model allows.
 *
 * The threads of a test are cooperative; each atomic access (base/atomic.h), lock and futex call is a scheduling point, and each load chooses among
 * all stores that release, acquire, relaxed and seq_cst rules let it see. The checker goes through the choices, and stops at the first execution that
 *     fails an assertion                      model_assert, weft_assert
 *     races on plain memory                   plain_read, plain_write; model_free against any access
 *     uses memory after it was freed, frees it twice, or leaves it behind
 *     ends with a thread that nobody will wake (deadlock, lost wake-up), or that spins for ever
 * and prints the schedule that led there. A printed path replays it. docs/MODEL_CHECKER.md is the guide; a test reads like this:
 *
 *     static _Atomic int flag;
 *     static int data;
 *     static void writer(void *arg) { plain_write(&data, 42); store_release(&flag, 1); }
 *     static void reader(void *arg) { if (load_acquire(&flag)) model_assert(plain_read(&data) == 42); }
 *     static void message_passing(void)            // runs once per execution, as thread 0; sets everything up afresh
 *     {
 *         store_relaxed(&flag, 0); plain_write(&data, 0);
 *         model_thread(writer, NULL);
 *         model_thread(reader, NULL);
 *         model_join();                            // waits for all threads
 *     }
 *     static const struct model_case cases[] = {{.name = "message passing", .run = message_passing}};
 *     int main(int argc, char **argv) { return model_main(argc, argv, cases, MODEL_COUNT(cases)); }
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what a test says ------------------------------------------------------------------------------------------------------------------ */

/* Start a thread; at most MODEL_THREADS_MAX with the test itself. */
#define MODEL_THREADS_MAX 6
void model_thread(void (*run)(void *), void *arg);

/* Wait until all threads have ended; what they did then happened before. */
void model_join(void);

/* Which thread this is: 0 is the test itself, then in the order of model_thread. */
unsigned model_self(void);

#define model_assert(fact) ((fact) ? (void)0 : model_fail_at(#fact, __FILE__, __LINE__))
void model_fail_at(const char *what, const char *file, int line); /* does not return to the caller */

/* One of 0..n-1; all are tried. For what the outside world decides. n is 1 to 65535. */
unsigned model_choose(unsigned n);

/* Memory that the checker watches. Zeroed; never given out twice in one execution; what is left at the end is a leak. */
void *model_alloc(size_t bytes);
void model_free(void *memory);

/* "Let others run first": inside a loop that waits for a value. The loop goes on only once something it looked at has changed, and then sees something
 * newer than before, so it ends; if nobody is left who could change it, that is a livelock. cpu_pause() is this. A loop that waits without it is reported
 * as endless. A loop that spins a bounded number of times and then gives up does so here only when nobody else can run: to have giving up tried at every
 * moment, set the bound to zero, or to model_choose. */
void model_yield(void);

/* A lock as a primitive, two scheduling points instead of a dozen; any address serves. model_try_lock never waits. */
void model_lock(const volatile void *address);
bool model_try_lock(const volatile void *address);
void model_unlock(const volatile void *address);

/* The futex of a 32-bit atomic, as the kernel has it. A timed wait may also end by its time-out (-ETIMEDOUT), at any moment.
 * With `spurious` in the options a wait may return 0 without a wake. */
int model_futex_wait(const volatile void *word, uint32_t expected, bool timed);
int model_futex_wake(const volatile void *word, int count);

/* membarrier(2): each thread passes a full fence where it stands, between two of its steps, while the caller waits for that. What the caller did before happens
 * before what each does from there on, and what each did up to there happens before what the caller does next. */
void model_membarrier(void);

/* A name for an address, used in printed schedules. Lasts for the execution. */
void model_name(const volatile void *address, const char *name);

/* ---- what is run ----------------------------------------------------------------------------------------------------------------------- */

#define MODEL_PREEMPTIONS 3

struct model_case {
    const char *name;
    void (*run)(void);              /* the test: thread 0 */
    unsigned preemptions;           /* bound on switches away from a thread that could go on; 0: MODEL_PREEMPTIONS */
    bool unbounded;                 /* all interleavings instead, thinned by sleep sets */
    unsigned pct_depth;             /* instead: randomised priorities, for bugs that need up to so many ordering constraints */
    uint64_t executions_max;        /* stop after so many; 0: never for a search, 20,000 for randomised */
    unsigned spurious;              /* futex waits that may return for no reason, per execution */
    int mutant;                     /* value of model_mutant while this case runs: a planted fault of the code under test */
    bool must_fail;                 /* a mutant that the checker must catch: the case fails if it survives */
    const char *why;                /* for must_fail: a word that the failure must contain; NULL: any */
    bool weaken;                    /* then run it again for each acquire, release and fence it met, made weaker: each must be caught */
    uint64_t seed;                  /* of a randomised search; 0: that of --seed, which is 1 unless given */
};

/* The planted fault that the case asked for; 0 for none. Broken twins in tests/model look at this. */
extern int model_mutant;

/* Places whose order may be weaker than written without any case of the program failing, with the reason; the end of the list has file NULL. An entry
 * that excuses nothing (the place is caught after all, or is gone) fails the program, unless --case leaves cases out. */
struct model_spare {
    const char *file;               /* ends with this */
    const char *text;               /* the operation's text contains this, e.g. "load_acquire(&q->head" */
    const char *reason;
};

/* Runs all cases, prints one line each, and answers an exit code. Options: --list, --case WORD, --replay PATH, --seed N, --trace, --quick. */
int model_main(int argc, char **argv, const struct model_case *cases, size_t count);
int model_main_with(int argc, char **argv, const struct model_case *cases, size_t count, const struct model_spare *spare);

struct model_result {
    uint64_t executions;            /* complete ones */
    uint64_t pruned;                /* cut short: equivalent to another, or forbidden by the seq_cst rules */
    uint64_t steps;
    bool failed;
    bool limit;                     /* failed by a limit of the checker (LOCS_MAX, an endless loop ...), not by what was checked */
    bool exhausted;                 /* every choice within the bound was taken */
    char why[256];
    char path[24576];               /* replays the failure */
};

/* One case, for programs that look at the result themselves. */
struct model_result model_run(const struct model_case *c);

/* One execution of a case, along the path of an earlier failure. */
struct model_result model_replay(const struct model_case *c, const char *along);

#endif
