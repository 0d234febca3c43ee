/* SPDX-License-Identifier: MIT
 *
 * harness - the main of weft_bench: finds the case, runs its rounds, prints them (bench/harness.h).
 *
 * Resident memory is read out of /proc with plain system calls into a buffer on the stack: stdio would allocate, and be counted.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_DEFAULT 2
#define WORKERS_MAX     1024 /* a typing error, not a machine */

enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_NO_CASE = 3 };

static struct bench_case *cases;

/* ---- what cases call ------------------------------------------------------------------------- */

/* Kept in the order of names: constructors of different files run in no order that is promised. */
void bench_register(struct bench_case *c)
{
    struct bench_case **at = &cases;

    while (*at && strcmp((*at)->name, c->name) < 0)
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

uint64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double bench_per_op(uint64_t start_ns, uint64_t ops)
{
    return (double)(bench_now_ns() - start_ns) / (double)ops;
}

void bench_check(struct bench *b, uint64_t checksum, uint64_t expected)
{
    b->checksum = checksum;
    b->checked = true;
    if (checksum == expected) return;
    fprintf(stderr, "%s: the checksum is %llu instead of %llu\n", b->name,
            (unsigned long long)checksum, (unsigned long long)expected);
    exit(EXIT_WRONG);
}

void bench_also(const struct bench *b, const char *suffix, double value)
{
    printf("%s_%s %.1f\n", b->name, suffix, value);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void read_proc(const char *path, char *into, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : read(fd, into, bytes - 1);

    if (count < 0) {
        fprintf(stderr, "weft_bench: %s cannot be read\n", path);
        exit(EXIT_WRONG);
    }
    into[count] = '\0';
    close(fd);
}

uint64_t bench_rss_bytes(void)
{
    char text[256];

    read_proc("/proc/self/statm", text, sizeof(text));
    char *resident = strchr(text, ' '); /* the first number is the size of the address space */
    return resident ? strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t bench_rss_peak_bytes(void)
{
    char text[4096];

    read_proc("/proc/self/status", text, sizeof(text));
    const char *line = strstr(text, "VmHWM:");
    return line ? strtoull(line + strlen("VmHWM:"), NULL, 10) * 1024 : 0;
}

uint64_t bench_leaves(const struct bench *b)
{
    uint64_t left = b->n;
    while (left >= 10 && left % 10 == 0) left /= 10;
    if (left == 1) return b->n;
    fprintf(stderr, "%s: N is a power of ten\n", b->name);
    exit(EXIT_USAGE);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void usage(void)
{
    fprintf(
        stderr,
        "usage: weft_bench CASE [WORKERS] [N]; weft_bench SERVER [WORKERS] [PORT]; weft_bench --list; weft_bench --servers\n");
    exit(EXIT_USAGE);
}

static uint64_t number(const char *text)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') usage();
    return value;
}

static void list_cases(bool servers)
{
    for (const struct bench_case *c = cases; c; c = c->next)
        if (c->serves == servers) puts(c->name);
}

static const struct bench_case *find_case(const char *name)
{
    for (const struct bench_case *c = cases; c; c = c->next) {
        if (strcmp(c->name, name) == 0) return c;
    }
    fprintf(stderr, "weft_bench: there is no case %s\n", name);
    exit(EXIT_NO_CASE);
}

/* A round that checked nothing may have done nothing. */
static void run_round(const struct bench_case *c, struct bench *b)
{
    b->checked = false;
    double value = c->body(b);
    if (!b->checked) {
        fprintf(stderr, "%s: there was no checksum\n", c->name);
        exit(EXIT_WRONG);
    }
    printf("%s %.3f%s%s\n", c->name, value, c->unit ? " " : "", c->unit ? c->unit : "");
    fflush(stdout);
}

static void run_case(const struct bench_case *c, struct bench *b)
{
    unsigned rounds = c->once ? 1 : BENCH_ROUNDS;

    if (c->serves) {
        (void)c->body(b);
        if (c->end) c->end(b);
        return;
    }
    for (b->round = 0; b->round < rounds; b->round++)
        run_round(c, b);
    if (c->end) c->end(b);
    fprintf(stderr, "checksum %s %llu\n", c->name, (unsigned long long)b->checksum);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) usage();
    if (strcmp(argv[1], "--list") == 0 || strcmp(argv[1], "--servers") == 0) {
        list_cases(strcmp(argv[1], "--servers") == 0);
        return 0;
    }
    const struct bench_case *c = find_case(argv[1]);
    uint64_t workers = argc > 2 ? number(argv[2]) : WORKERS_DEFAULT;
    if (workers > WORKERS_MAX) usage();
    struct bench b = {.name = c->name, .workers = (unsigned)workers, .n = c->n};
    if (argc > 3) b.n = number(argv[3]);
    run_case(c, &b);
    return 0;
}
