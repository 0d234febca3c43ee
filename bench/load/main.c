/* SPDX-License-Identifier: MIT
 *
 * load CASE PORT [OPTION...] - asks a server of the case (bench/serve.h) as fast as it answers, on one thread, and compares every byte.
 *
 *     --conns=1         connections
 *     --depth=1         requests of each that are under way
 *     --seconds=2       of the count, behind --warm=0.3 seconds that do not count
 *     --requests=N      so many in all instead, whatever time it takes
 *     --size=64         bytes of a message of echo
 *     --cut=N           no more than so many bytes in one send
 *     --pid=PID         the server: SIGUSR1 and SIGUSR2 tell it when the count begins and ends
 *
 * One line for each number: load_rate (requests a second), load_requests, load_seconds, load_p50, load_p99, load_p999, load_max (us), load_cpu (us of this
 * program's own time for a request). Exit codes: 0, 1 a wrong answer or none, 2 bad arguments.
 */
#include "http.h"
#include "load.h"
#include "serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define DESCRIPTORS_BESIDE 16 /* the epoll, and what was inherited */

__attribute__((noreturn)) static void usage(const char *what, const char *text)
{
    fprintf(stderr,
            "load: %s%s\nusage: load echo|http PORT [--conns=N] [--depth=N] [--seconds=S] "
            "[--warm=S] [--requests=N] [--size=BYTES] [--cut=BYTES] [--pid=PID]\n",
            what, text);
    exit(2);
}

/* ---- options ---- */

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < least || value > most)
        usage("a number that will not do: ", text);
    return value;
}

static double seconds(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= 3600))
        usage("seconds that will not do: ", text);
    return value;
}

/* What stands behind "--name="; NULL: it is another option. */
static const char *value_of(const char *option, const char *name)
{
    size_t len = strlen(name);
    return strncmp(option, name, len) == 0 && option[len] == '=' ? option + len + 1 : NULL;
}

static void read_option(const char *option, struct load_plan *plan, size_t *size)
{
    const char *value;
    if ((value = value_of(option, "--conns"))) {
        plan->conns = (unsigned)number(value, 1, 1000000);
    } else if ((value = value_of(option, "--depth"))) {
        plan->depth = (unsigned)number(value, 1, 1000);
    } else if ((value = value_of(option, "--seconds"))) {
        plan->count_s = seconds(value);
    } else if ((value = value_of(option, "--warm"))) {
        plan->warm_s = seconds(value);
    } else if ((value = value_of(option, "--requests"))) {
        plan->requests = number(value, 1, UINT64_MAX);
    } else if ((value = value_of(option, "--size"))) {
        *size = number(value, 8, 65536);
    } else if ((value = value_of(option, "--cut"))) {
        plan->cut_bytes = number(value, 1, 65536);
    } else if ((value = value_of(option, "--pid"))) {
        plan->server = (pid_t)number(value, 1, INT32_MAX);
    } else {
        usage("there is no option ", option);
    }
}

/* ---- scripts ---- */

static struct load_script echo_script(size_t size)
{
    char *text = malloc(size);
    if (!text) exit(1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + i % 26);
    return (struct load_script){text, size, text, size, true};
}

/* As wrk asks. */
static struct load_script http_script(unsigned port)
{
    static char text[128];
    int len = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", port);
    return (struct load_script){text, (size_t)len, HTTP_ANSWER, HTTP_ANSWER_BYTES, false};
}

/* ---- the rest ---- */

static void raise_descriptors(unsigned conns)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)conns + DESCRIPTORS_BESIDE;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted) return;
    if (limit.rlim_max < wanted) {
        fprintf(
            stderr,
            "load: %u connections need %llu descriptors, and this process may have %llu (ulimit -Hn)\n",
            conns, (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
        exit(2);
    }
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void report(const struct load_result *r)
{
    double requests = r->requests ? (double)r->requests : 1;
    printf("load_rate %.1f\n", r->seconds > 0 ? (double)r->requests / r->seconds : 0);
    printf("load_requests %llu\nload_seconds %.3f\n", (unsigned long long)r->requests, r->seconds);
    printf("load_p50 %.3f\n", (double)hist_at(&r->times, 0.5) / 1e3);
    printf("load_p99 %.3f\n", (double)hist_at(&r->times, 0.99) / 1e3);
    printf("load_p999 %.3f\n", (double)hist_at(&r->times, 0.999) / 1e3);
    printf("load_max %.3f\n", (double)r->times.max / 1e3);
    printf("load_cpu %.3f\n", r->cpu_us / requests);
}

int main(int argc, char **argv)
{
    static struct load_result result;
    struct load_plan plan = {.conns = 1, .depth = 1, .warm_s = 0.3, .count_s = 2};
    size_t size = SERVE_ECHO_BYTES;

    if (argc < 3) usage("a case and a port are needed", "");
    for (int i = 3; i < argc; i++)
        read_option(argv[i], &plan, &size);
    plan.port = (uint16_t)number(argv[2], 1, UINT16_MAX);
    if (strcmp(argv[1], "echo") == 0) {
        plan.script = echo_script(size);
    } else if (strcmp(argv[1], "http") == 0) {
        plan.script = http_script(plan.port);
    } else {
        usage("there is no load for ", argv[1]);
    }
    raise_descriptors(plan.conns);
    load_run(&plan, &result);
    report(&result);
    return 0;
}
