/* SPDX-License-Identifier: MIT
 *
 * harness - how a case of weft_bench reads: BENCH(name, .n = 1000) { ... return nanoseconds per operation; }.
 *
 *     weft_bench CASE [WORKERS] [N]     five rounds, one line each: CASE VALUE
 *     weft_bench --list                 the names of the cases
 *     weft_bench SERVER [WORKERS] [PORT]   serves until SIGTERM or SIGINT, then tells what a request has cost (serve.h)
 *     weft_bench --servers              their names
 * WORKERS 0 is the current-thread runtime, 2 the default. The peers under bench/peers understand the same line, so that
 * bench/compare can treat all of them alike. Each case hands its checksum to bench_check; the harness prints it once, on
 * stderr, and every side must print the same. Exit codes: 0, 1 wrong checksum, 2 bad arguments, 3 no such case.
 *
 * A body is one round and keeps the time itself, so that what a round needs and does not measure stays outside. What all
 * rounds share, the runtime above all, is made in the first one, kept in b->state, and taken down by `.end`: the first
 * round is then cold and the others warm, as on the other sides.
 *
 * Threads: registration before main; all else by the main thread, except bench_now_ns, which anyone may call.
 */
#ifndef WEFT_BENCH_HARNESS_H
#define WEFT_BENCH_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_ROUNDS 5

/* One case as it was asked for; what a body gets. */
struct bench {
    unsigned workers;  /* 0: the current-thread runtime */
    uint64_t n;        /* the case's own measure; .n unless the command line says otherwise */
    unsigned round;    /* 0 is the cold one */
    void *state;       /* the body's own, NULL in round 0; kept between rounds */
    uint64_t checksum; /* of the last round; written by bench_check */
    bool checked;      /* bench_check was called in this round */
    const char *name;
};

struct bench_case {
    const char *name;
    double (*body)(struct bench *b); /* one round; returns what is printed */
    void (*end)(struct bench *b);    /* after the last round; may be NULL */
    uint64_t n;                      /* the default of b->n */
    const char *unit;                /* behind the value; NULL: ns per operation, or bytes */
    bool once;                       /* one round: a second one would live in old memory */
    bool serves; /* a server: its body lasts until a signal, and prints what it has to say itself */
    struct bench_case *next;
};

/* BENCH(spawn, .n = 1000000, .end = stop_runtime) { ... } makes
 *     static double bench_spawn(struct bench *b);   which is the braces
 * and a constructor that registers it under the name "spawn". */
#define BENCH(case_name, ...)                                                                      \
    static double bench_##case_name(struct bench *b);                                              \
    static struct bench_case bench_##case_name##_case = {                                          \
        .name = #case_name, .body = bench_##case_name, __VA_ARGS__};                               \
    __attribute__((constructor)) static void bench_##case_name##_register(void)                    \
    {                                                                                              \
        bench_register(&bench_##case_name##_case);                                                 \
    }                                                                                              \
    static double bench_##case_name(struct bench *b)

/* Borrows for good: `c` is static. */
void bench_register(struct bench_case *c);

/* The monotonic clock. */
uint64_t bench_now_ns(void);

/* Nanoseconds per operation since `start_ns`; what most bodies return. */
double bench_per_op(uint64_t start_ns, uint64_t ops);

/* The round's checksum. Ends the process with code 1 when it is not the expected one. */
void bench_check(struct bench *b, uint64_t checksum, uint64_t expected);

/* One more line of output: `CASE_suffix VALUE`. */
void bench_also(const struct bench *b, const char *suffix, double value);

uint64_t bench_rss_bytes(void);      /* resident now */
uint64_t bench_rss_peak_bytes(void); /* the most there ever was */

/* 0 + 1 + ... + (n - 1), the checksum of many cases. */
static inline uint64_t bench_sum_below(uint64_t n)
{
    return n ? n * (n - 1) / 2 : 0;
}

/* How often each of n tasks yields, so that they do it a million times together. */
static inline uint64_t bench_yields_each(uint64_t n)
{
    return n && n < 1000000 ? 1000000 / n : 1;
}

/* N, of a case that is a tree of ten children a node; ends the program with a message if there is none with so many leaves. */
uint64_t bench_leaves(const struct bench *b);

/* The nodes of a tree of ten children a node and `leaves` leaves, a power of ten. */
static inline uint64_t bench_tree_nodes(uint64_t leaves)
{
    return (10 * leaves - 1) / 9;
}

#endif
