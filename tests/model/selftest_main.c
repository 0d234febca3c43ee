/* SPDX-License-Identifier: MIT
 *
 * The checker's front on trial: the command line, planted faults, replay, and the orders that are made weaker by themselves.
 *
 * Programs within the program: model_main is called with cases of its own, its output goes to a file that is looked at. The code under test claims to
 * lie in src, by #line: only the library's places are made weaker.
 */
#include "base/atomic.h"
#include "trial.h"

#include <stdlib.h>
#include <unistd.h>

static _Atomic uint32_t flag;
static unsigned data;

/* The orders on trial: a release and an acquire that are needed, and an acquire that is not. */
#line 1 "src/selftest_code.c"
static void publish(void *unused __attribute__((unused)))
{
    plain_write(&data, 1);
    store_release(&flag, 1);
}
static void consume(void *unused __attribute__((unused)))
{
    if (load_acquire(&flag)) model_assert(plain_read(&data) == 1);
}
static void look(void *unused __attribute__((unused)))
{
    (void)load_acquire(&flag);
}
static void fenced(void *unused __attribute__((unused)))
{
    (void)load_relaxed(&flag);
    fence_seq_cst();
}
#line 37 "selftest_main.c"

static void run2(void (*one)(void *), void (*two)(void *))
{
    store_relaxed(&flag, 0);
    plain_write(&data, 0);
    model_thread(one, NULL);
    model_thread(two, NULL);
    model_join();
}
static void needed(void)
{
    run2(publish, consume);
}
static void needless(void)
{
    run2(publish, look);
}
static void needless_fence(void)
{
    run2(publish, fenced);
}
static void broken(void)
{
    needed();
    if (model_mutant == 5) model_assert(load_relaxed(&flag) == 2);
}
static void endless(void)
{
    for (;;)
        (void)load_relaxed(&flag);
}

/* ---- a program within the program ---- */

static char output[1 << 16];

static void read_output(const char *path)
{
    FILE *f = fopen(path, "r");
    size_t got = f ? fread(output, 1, sizeof(output) - 1, f) : 0;
    output[got] = 0;
    if (f) fclose(f);
}

/* What model_main answers; what it prints is then in `output`. */
static int run_main(const struct model_case *cases, size_t count, const struct model_spare *spare,
                    const char **argv)
{
    char path[] = "/tmp/model_selftest_XXXXXX";
    int file = mkstemp(path);
    int kept = dup(STDOUT_FILENO);
    if (file < 0 || kept < 0) exit(1);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    int argc = 0;
    while (argv[argc])
        argc++;
    int r = model_main_with(argc, (char **)argv, cases, count, spare);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    read_output(path);
    close(kept);
    close(file);
    unlink(path);
    return r;
}

#define MAIN(cases, spare, ...)                                                                    \
    run_main(cases, MODEL_COUNT(cases), spare, (const char *[]){"program", __VA_ARGS__, NULL})

/* ---- orders made weaker ---- */

static void weakened(void)
{
    static const struct model_case good[] = {{.name = "needed", .run = needed, .weaken = true}};
    static const struct model_case with_look[] = {
        {.name = "needed", .run = needed, .weaken = true},
        {.name = "needless", .run = needless, .weaken = true}};
    static const struct model_case with_fence[] = {
        {.name = "fence", .run = needless_fence, .weaken = true}};
    static const struct model_case untested[] = {
        {.name = "needless", .run = needless, .weaken = true}};
    static const struct model_spare look_is_spare[] = {
        {"selftest_code.c", "load_acquire(&flag", "only a hint"}, {0}};
    static const struct model_spare stale[] = {
        {"selftest_code.c", "load_acquire(&flag", "only a hint"},
        {"gone.c", "load", "was there"},
        {0}};
    static const struct model_spare other_file[] = {
        {"other_code.c", "load_acquire(&flag", "only a hint"}, {0}};

    trial(MAIN(good, NULL, "--seed", "3") == 0 && strstr(output, "2 of 2 caught"), "weaken",
          "needed orders are not found to be so");
    trial(MAIN(with_look, NULL, "--seed", "3") == 1 && strstr(output, "no case notices"), "weaken",
          "a needless order is not reported");
    trial(MAIN(with_look, look_is_spare, "--seed", "3") == 0 && strstr(output, "only a hint"),
          "weaken", "the spare list does not excuse");
    trial(MAIN(with_look, other_file, "--seed", "3") == 1, "weaken",
          "the spare list of another file excuses");
    trial(MAIN(with_look, stale, "--seed", "3") == 1 &&
              strstr(output, "gone.c load excuses nothing"),
          "weaken", "a stale spare entry passes");
    trial(MAIN(with_look, stale, "--case", "needless") == 0 && !strstr(output, "gone.c"), "weaken",
          "a part run judges the spare list");
    trial(MAIN(good, look_is_spare, "--seed", "3") == 1, "weaken",
          "a spare entry for an order that is caught passes");
    trial(MAIN(with_fence, NULL, "--seed", "3") == 1 && strstr(output, "fence_seq_cst() removed"),
          "weaken", "a needless fence is not reported");
    trial(MAIN(untested, NULL, "--seed", "3") == 1 &&
              strstr(output, "store_release(&flag, 1) without release"),
          "weaken", "an untested order is not reported");
    trial(MAIN(with_look, NULL, "--quick") == 0, "--quick", "weakens");
}

/* ---- planted faults ---- */

static void mutants(void)
{
    static const struct model_case caught[] = {
        {.name = "m", .run = broken, .mutant = 5, .must_fail = true, .why = "flag) == 2"}};
    static const struct model_case survives[] = {
        {.name = "m", .run = broken, .mutant = 4, .must_fail = true}};
    static const struct model_case otherwise[] = {
        {.name = "m", .run = broken, .mutant = 5, .must_fail = true, .why = "data race"}};
    static const struct model_case by_limit[] = {{.name = "m", .run = endless, .must_fail = true}};
    trial(MAIN(caught, NULL, "--quick") == 0 && strstr(output, "the schedule"), "mutant",
          "a caught one is not shown, or fails");
    trial(MAIN(survives, NULL, "--quick") == 1 && strstr(output, "survived"), "mutant",
          "a survivor passes");
    trial(MAIN(otherwise, NULL, "--quick") == 1 && strstr(output, "but not with"), "mutant",
          "caught for another reason passes");
    trial(MAIN(by_limit, NULL, "--quick") == 1, "mutant", "one that only hits a limit passes");
}

/* ---- the command line ---- */

static void command_line(void)
{
    static const struct model_case cases[] = {{.name = "first", .run = needed},
                                              {.name = "bad one", .run = broken, .mutant = 5}};
    static char path[sizeof((struct model_result){0}.path)];

    trial(MAIN(cases, NULL, "--list") == 0 && strcmp(output, "first\nbad one\n") == 0, "--list",
          "other than the names");
    trial(MAIN(cases, NULL, "--case", "first") == 0, "--case", "ran more than it should");
    trial(MAIN(cases, NULL, "--case", "bad") == 1, "--case", "a failure passes");
    const char *replay = strstr(output, "--replay ");
    if (!trial(replay && sscanf(replay, "--replay %24000s", path) == 1, "replay",
               "no path is printed"))
        return;
    trial(MAIN(cases, NULL, "--case", "bad", "--replay", path) == 1 &&
              strstr(output, "1 executions"),
          "--replay", "does not fail again");
    trial(strstr(output, "store_release(&flag, 1) = 0x1") != NULL, "--replay",
          "prints no schedule");
    trial(MAIN(cases, NULL, "--case", "bad", "--replay", "7.7.7") == 1 &&
              strstr(output, "does not fit"),
          "--replay", "accepts any path");
}

static void bad_options(void)
{
    static const struct model_case cases[] = {{.name = "first", .run = needed}};
    int kept = dup(STDERR_FILENO);
    if (kept < 0 || !freopen("/dev/null", "w", stderr)) exit(1);
    trial(MAIN(cases, NULL, "--case", "no such case") == 2, "--case", "nothing to run is no error");
    trial(MAIN(cases, NULL, "--nonsense") == 2, "usage", "accepts anything");
    trial(MAIN(cases, NULL, "--case") == 2, "usage", "accepts an option without its value");
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
}

/* ---- names in schedules ---- */

static void named(void)
{
    model_name(&flag, "the flag"); /* before its first use */
    store_relaxed(&flag, 1);
    model_assert(load_relaxed(&flag) == 2);
}
static void names(void)
{
    static const struct model_case cases[] = {{.name = "named", .run = named}};
    trial(MAIN(cases, NULL, "--quick") == 1 && strstr(output, "[the flag] = 0x1"), "model_name",
          "is not in the schedule");
}

int main(void)
{
    weakened();
    mutants();
    command_line();
    bad_options();
    names();
    return trial_end("selftest_main");
}
