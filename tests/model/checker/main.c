/* SPDX-License-Identifier: MIT
 *
 * main - runs a program's cases, prints what was explored, and plants mutants by itself: each order made weaker must be caught.
 *
 * A case that passes says how many executions it took and within which bound. A mutant (must_fail) passes if the checker catches it, and shows the failing
 * schedule. With `weaken`, each place that acquires, releases or fences is made weaker, one at a time, and every case that asks for it is run again:
 * a place that can be weaker without any case noticing is either stronger than it needs to be, or not tested; it has to be listed, with the reason. A
 * listed place that no longer excuses anything fails as well, so that the list stays true.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- orders made weaker ---- */

#define SITES_MAX 512

const struct model_site *model__weak_site;
enum weaken model__weak_how;
bool model__collecting;

static struct weak {
    const struct model_site *at;
    enum weaken how;
    const char *text;
} weak[SITES_MAX];
static unsigned weak_count;
static bool weak_overflow;          /* more than SITES_MAX: some places were not tried */

static void collect_one(const struct model_site *at, enum weaken how, const char *text)
{
    for (unsigned i = 0; i < weak_count; i++)
        if (weak[i].at == at && weak[i].how == how) return;
    if (weak_count == SITES_MAX) {
        weak_overflow = true;
        return;
    }
    weak[weak_count++] = (struct weak){.at = at, .how = how, .text = text};
}

/* Only the library's own places, in src: a test's are not what is on trial, wherever the repository lies. */
static bool on_trial(const struct model_site *at)
{
    bool in_src = strstr(at->file, "/src/") || strncmp(at->file, "src/", 4) == 0;
    return in_src && !strstr(at->file, "tests/model/");
}

void model__collect(const struct model_site *at, enum model_order order, bool fence)
{
    if (!on_trial(at)) return;
    if (fence) {
        collect_one(at, WEAKEN_FENCE, "removed");
        if (order == MODEL_seq_cst) collect_one(at, WEAKEN_SEQ_CST, "as acq_rel");
        return;
    }
    if (order == MODEL_seq_cst) {
        collect_one(at, WEAKEN_SEQ_CST, "as acq_rel");
        return;
    }
    if (acquires(order)) collect_one(at, WEAKEN_ACQUIRE, "without acquire");
    if (releases(order)) collect_one(at, WEAKEN_RELEASE, "without release");
}

/* ---- printing ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const char *bound_of(const struct model_case *c, char *text, size_t bytes)
{
    if (c->pct_depth) {
        snprintf(text, bytes, "PCT depth %u, seed %llu", c->pct_depth,
                 (unsigned long long)model__seed);
    } else if (c->unbounded) {
        snprintf(text, bytes, "all interleavings");
    } else {
        snprintf(text, bytes, "<= %u preemptions",
                 c->preemptions ? c->preemptions : MODEL_PREEMPTIONS);
    }
    return text;
}

static const char *program = "model";

static void print_failure(const struct model_case *c, const struct model_result *r)
{
    printf("      %s\n", r->why);
    if (r->path[0] == '(') {
        printf("      its path is too long to replay %s\n", r->path);
        return;
    }
    printf("      the schedule:\n");
    model__hide_setup = model__thread_count > 1; /* of the execution that failed */
    model__tracing = true;
    model_replay(c, r->path);
    model__tracing = false;
    model__hide_setup = false;
    printf("      replay: %s --case \"%s\" --replay %s\n", program, c->name, r->path);
}

static void print_line(const char *verdict, const struct model_case *c,
                       const struct model_result *r, double took)
{
    char bound[64];
    printf("%-8s %-62s %9llu executions, %7llu cut, %s%s, %.2f s\n", verdict, c->name,
           (unsigned long long)r->executions, (unsigned long long)r->pruned,
           bound_of(c, bound, sizeof(bound)), r->exhausted ? " (exhausted)" : "", took);
    fflush(stdout);
}

/* ---- cases ---- */

static bool run_case(const struct model_case *c, bool show)
{
    double began = seconds();
    struct model_result r = model_run(c);
    double took = seconds() - began;
    bool caught = r.failed && (c->why ? strstr(r.why, c->why) != NULL : !r.limit);
    bool ok = c->must_fail ? caught : !r.failed;
    bool cut_off = !c->must_fail && !c->pct_depth && !r.failed && !r.exhausted &&
                   !c->executions_max && !model__replay;

    print_line(!ok || cut_off ? "FAILED" : c->must_fail ? "caught" : "ok", c, &r, took);
    if (c->must_fail && !r.failed) printf("      a planted fault survived\n");
    if (r.failed && c->must_fail && !caught)
        printf("      it failed, but not with \"%s\":\n", c->why ? c->why : "what was checked");
    if (r.failed && (show || !ok || c->must_fail)) print_failure(c, &r);
    return ok && !cut_off;
}

static const struct model_spare *spare_for(const struct weak *w, const struct model_spare *spare)
{
    for (; spare && spare->file; spare++) {
        size_t have = strlen(w->at->file);
        size_t want = strlen(spare->file);
        if (have >= want && strcmp(w->at->file + have - want, spare->file) == 0 &&
            strstr(w->at->text, spare->text))
            return spare;
    }
    return NULL;
}

static bool caught_by_any(const struct weak *w, const struct model_case *cases, size_t count,
                          uint64_t *executions)
{
    model__weak_site = w->at;
    model__weak_how = w->how;
    bool caught = false;
    for (size_t i = 0; i < count && !caught; i++) {
        if (!cases[i].weaken || cases[i].must_fail) continue;
        struct model_result r = model_run(&cases[i]);
        *executions += r.executions;
        caught = r.failed && !r.limit;
    }
    model__weak_site = NULL;
    return caught;
}

static void print_survivor(const struct weak *w, const struct model_spare *excuse)
{
    const char *base = strrchr(w->at->file, '/');
    printf("%-8s %s:%d %s %s%s%s\n", excuse ? "spare" : "FAILED", base ? base + 1 : w->at->file,
           w->at->line, w->at->text, w->text, excuse ? ": " : ": no case notices",
           excuse ? excuse->reason : "");
}

/* An entry that excuses nothing is a claim about code that has changed. */
static bool all_spares_used(const struct model_spare *spare, const bool *used)
{
    bool ok = true;
    for (unsigned i = 0; spare && spare[i].file; i++) {
        if (i < SITES_MAX && used[i]) continue;
        printf("FAILED   spare list: %s %s excuses nothing: it is caught, or not there\n",
               spare[i].file, spare[i].text);
        ok = false;
    }
    return ok;
}

static bool run_weakened(const struct model_case *cases, size_t count,
                         const struct model_spare *spare, bool all_cases)
{
    static bool used[SITES_MAX];
    double began = seconds();
    uint64_t executions = 0;
    unsigned caught = 0;
    unsigned excused = 0;
    bool ok = !weak_overflow;

    if (weak_overflow) printf("FAILED   more than %d places to weaken (SITES_MAX)\n", SITES_MAX);
    memset(used, 0, sizeof(used));
    for (unsigned i = 0; i < weak_count; i++) {
        const struct model_spare *excuse = spare_for(&weak[i], spare);
        if (excuse && !*excuse->text) { /* the whole file is on trial elsewhere */
            used[excuse - spare] = true;
            excused++;
            continue;
        }
        if (caught_by_any(&weak[i], cases, count, &executions)) {
            caught++;
            continue;
        }
        print_survivor(&weak[i], excuse);
        if (excuse && excuse - spare < SITES_MAX) used[excuse - spare] = true;
        excused += excuse != NULL;
        ok &= excuse != NULL;
    }
    if (all_cases) ok &= all_spares_used(spare, used);
    if (weak_count == 0) return ok;
    printf(
        "%-8s orders made weaker: %u of %u caught, %u listed as spare; %llu executions, %.2f s\n",
        ok ? "ok" : "FAILED", caught, weak_count, excused, (unsigned long long)executions,
        seconds() - began);
    return ok;
}

/* ---- the command line ---- */

struct options {
    const char *only;
    bool list;
    bool show;
    bool quick;
    bool bad;
};

static struct options parse(char **argv)
{
    struct options o = {0};
    model__seed = 1;
    model__replay = NULL;
    for (argv++; *argv; argv++) {
        const char *word = argv[0];
        const char *value = argv[1]; /* NULL behind the last */
        if (strcmp(word, "--list") == 0) {
            o.list = true;
        } else if (strcmp(word, "--trace") == 0) {
            o.show = true;
        } else if (strcmp(word, "--quick") == 0) {
            o.quick = true;
        } else if (strcmp(word, "--case") == 0 && value) {
            o.only = value;
            argv++;
        } else if (strcmp(word, "--replay") == 0 && value) {
            model__replay = value;
            o.show = true;
            argv++;
        } else if (strcmp(word, "--seed") == 0 && value) {
            model__seed = strtoull(value, NULL, 0);
            argv++;
        } else {
            o.bad = true;
        }
    }
    return o;
}

int model_main_with(int argc, char **argv, const struct model_case *cases, size_t count,
                    const struct model_spare *spare)
{
    (void)argc; /* argv ends with NULL */
    struct options o = parse(argv);
    unsigned ran = 0;
    unsigned failed = 0;

    program = argv[0];
    weak_count = 0;
    weak_overflow = false;
    if (o.bad) {
        fprintf(stderr,
                "usage: %s [--list] [--case WORD] [--replay PATH] [--seed N] [--trace] [--quick]\n",
                program);
        return 2;
    }
    for (size_t i = 0; i < count; i++) {
        if (o.only && !strstr(cases[i].name, o.only)) continue;
        ran++;
        if (o.list) {
            printf("%s\n", cases[i].name);
            continue;
        }
        model__collecting = cases[i].weaken && !model__replay;
        failed += !run_case(&cases[i], o.show);
        model__collecting = false;
    }
    if (!o.list && !o.quick && !model__replay && !run_weakened(cases, count, spare, !o.only))
        failed++;
    if (ran == 0) {
        fprintf(stderr, "%s: no case matches\n", program);
        return 2;
    }
    if (!o.list) printf("%u cases, %u failed\n", ran, failed);
    model__replay = NULL;
    return failed ? 1 : 0;
}

int model_main(int argc, char **argv, const struct model_case *cases, size_t count)
{
    return model_main_with(argc, argv, cases, count, NULL);
}
