/* SPDX-License-Identifier: MIT
 *
 * options - defaults, what the environment says, and what is refused.
 */
#include "sched/sched.h"

#include "sys/clock.h"
#include "sys/cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct variable {
    const char *name;
    int64_t least;
    int64_t most;
};

/* Digits, perhaps behind a minus. By hand: strtoll says by errno alone that a number did not fit. */
static bool number_of(const char *text, int64_t *into)
{
    bool negative = *text == '-';
    int64_t value = 0;
    text += negative;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *text - '0', &value)) return false;
    }
    *into = negative ? -value : value;
    return true;
}

/* 1: there, and read into *into. 0: not set. -EINVAL: set to something else, which was said. */
static int from_environment(const struct variable *v, int64_t *into)
{
    const char *text = getenv(v->name);
    int64_t value = 0;
    if (!text || !*text) return 0;
    if (!number_of(text, &value) || value < v->least || value > v->most) {
        fprintf(stderr, "weft: %s=%s: want a number from %lld to %lld\n", v->name, text, (long long)v->least, (long long)v->most);
        return -EINVAL;
    }
    *into = value;
    return 1;
}

/* The environment goes before the program: whoever runs it has the last word. */
static int fill(const struct variable *v, int64_t given, int64_t fallback, int64_t *into)
{
    int r = from_environment(v, into);
    if (r != 0) return r < 0 ? r : 0;
    *into = given ? given : fallback;
    if (!given || (*into >= v->least && *into <= v->most)) return 0;
    fprintf(stderr, "weft: option for %s is %lld: want a number from %lld to %lld\n", v->name, (long long)*into, (long long)v->least, (long long)v->most);
    return -EINVAL;
}

/* The same of one that is said by a word; `into` is its number. */
static int fill_word(const char *name, const char *const *words, int *into)
{
    const char *text = getenv(name);
    int count = 0;
    while (words[count]) {
        if (text && strcmp(text, words[count]) == 0) {
            *into = count;
            return 0;
        }
        count++;
    }
    bool told = text && *text;
    if (!told && *into >= 0 && *into < count) return 0;
    if (told) fprintf(stderr, "weft: %s=%s: want", name, text);
    else fprintf(stderr, "weft: option for %s is %d: want", name, *into);
    for (int i = 0; i < count; i++)
        fprintf(stderr, "%s %s", i == 0 ? "" : i < count - 1 ? "," : " or", words[i]);
    fputc('\n', stderr);
    return -EINVAL;
}

/* The same of a name, which stands in front of a number in those of threads. An empty variable is as none. */
static int fill_name(const char **into)
{
    const char *text = getenv("WEFT_NAME");
    bool told = text && *text;
    if (!told) text = *into;
    if (!text || (*text && strlen(text) <= WEFT__NAME_MAX)) {
        *into = text;
        return 0;
    }
    fprintf(stderr, told ? "weft: WEFT_NAME=%s" : "weft: option for WEFT_NAME is \"%s\"", text);
    fprintf(stderr, ": want 1 to %d bytes\n", WEFT__NAME_MAX);
    return -EINVAL;
}

static int64_t usable_cpus(void)
{
    struct weft__cpu_limits limits;
    weft__cpu_limits(&limits);
    return limits.usable_count > WEFT__WORKERS_MAX ? WEFT__WORKERS_MAX : limits.usable_count;
}

/* For WEFT_MAIN, which no program can give options to. */
int weft__options_stop_ms(int64_t *into)
{
    static const struct variable stop = {"WEFT_STOP", 0, 86400000};
    return fill(&stop, 0, 10000, into);
}

int weft__options_fill(struct weft_rt_opts *o)
{
    static const struct variable workers = {"WEFT_WORKERS", -1, WEFT__WORKERS_MAX};
    static const struct variable thread_stack = {"WEFT_THREAD_STACK", 16384, INT64_C(1) << 32};
    static const struct variable stack = {"WEFT_STACK", 16384, INT64_C(1) << 32};
    static const struct variable pin = {"WEFT_PIN", 0, 1};
    static const struct variable tick = {"WEFT_TICK", 1, 100000};
    static const struct variable budget = {"WEFT_BUDGET", 1, 1000000};
    static const struct variable spin = {"WEFT_SPIN", 0, 1000000};
    static const struct variable seed = {"WEFT_SEED", 1, INT64_MAX};
    static const struct variable monitor = {"WEFT_MONITOR", -1, 10000000};
    static const struct variable schedtrace = {"WEFT_SCHEDTRACE", 0, 3600000};
    static const struct variable blocking = {"WEFT_BLOCKING_THREADS", 1, WEFT__BLOCKING_THREADS_MAX};
    static const struct variable keep = {"WEFT_BLOCKING_KEEP", 1, 86400000};
    static const struct variable paused = {"WEFT_PAUSED", 0, 1};
    static const char *const drivers[] = {
        [WEFT_DRIVER_AUTO] = "auto", [WEFT_DRIVER_EPOLL] = "epoll", [WEFT_DRIVER_IO_URING] = "io_uring", NULL};
    static const char *const ways[] = {
        [WEFT_FILES_AUTO] = "auto", [WEFT_FILES_POOL] = "pool", [WEFT_FILES_IO_URING] = "io_uring", NULL};
    int driver = (int)o->driver;
    int files = (int)o->files;
    const char *name = o->name;
    int64_t v[13];
    int r = fill(&workers, o->workers, usable_cpus(), &v[0]);
    if (r == 0) r = fill(&thread_stack, (int64_t)o->thread_stack_bytes, 0, &v[1]);
    if (r == 0) r = fill(&stack, (int64_t)o->stack_bytes, 256 * 1024, &v[2]);
    if (r == 0) r = fill(&pin, o->pin_threads, 0, &v[3]);
    if (r == 0) r = fill(&tick, o->tick_max, 61, &v[4]);
    if (r == 0) r = fill(&budget, o->budget, 128, &v[5]);
    if (r == 0) r = fill(&spin, o->spin_us, 20, &v[6]);
    if (r == 0) r = fill(&seed, (int64_t)(o->seed & INT64_MAX), weft__clock_now() | 1, &v[7]);
    if (r == 0) r = fill(&monitor, o->monitor_us, 0, &v[8]);
    if (r == 0) r = fill(&schedtrace, o->schedtrace_ms, 0, &v[9]);
    if (r == 0) r = fill(&blocking, o->blocking_threads, 512, &v[10]);
    if (r == 0) r = fill(&keep, o->blocking_keep_ms, 10000, &v[11]);
    if (r == 0) r = fill(&paused, o->paused, 0, &v[12]);
    if (r == 0) r = fill_name(&name);
    if (r == 0) r = fill_word("WEFT_DRIVER", drivers, &driver);
    if (r == 0) r = fill_word("WEFT_FILES", ways, &files);
    if (r < 0) return r;
    if (o->workers == -1) v[0] = -1; /* who turns it himself could not do with threads: no preference, but how the program is made */
    o->name = name;
    o->driver = (weft_driver)driver;
    o->files = (weft_files_way)files;
    o->workers = (int)(v[0] ? v[0] : usable_cpus());
    o->thread_stack_bytes = (size_t)v[1];
    o->stack_bytes = (size_t)v[2];
    o->pin_threads = v[3] != 0;
    o->tick_max = (unsigned)v[4];
    o->budget = (unsigned)v[5];
    o->spin_us = (unsigned)v[6];
    o->seed = (uint64_t)v[7];
    o->monitor_us = (int)(v[8] ? v[8] : 5000);
    o->schedtrace_ms = (unsigned)v[9];
    o->blocking_threads = (unsigned)v[10];
    o->blocking_keep_ms = (unsigned)v[11];
    o->paused = v[12] != 0;
    return 0;
}
