/* SPDX-License-Identifier: MIT
 *
 * WEFT_SCHEDTRACE: a process that runs with it says a line in each interval, busy or idle.
 */
#include "crew.h"
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process with a runtime, which lives until its `quit` ends; what it says comes out of `said`. */
struct traced {
    pid_t pid;
    int quit;
    FILE *said;
};

struct program {
    int workers;
    const char *name;
    bool busy;   /* else all workers sleep */
    int monitor; /* monitor_us */
};

static _Atomic bool over;

static int yields_until_over(void)
{
    while (!load_relaxed(&over))
        if (weft_yield() < 0) break;
    return 0;
}

static void run_program(const struct program *p, int quit)
{
    struct crew crew;
    char byte;
    int got;
    setenv("WEFT_SCHEDTRACE", "1", 1);
    crew_start_with(
        &crew, &(weft_rt_opts){.workers = p->workers, .name = p->name, .monitor_us = p->monitor});
    weft_task *task = p->busy ? weft_go(yields_until_over) : NULL;
    while (read(quit, &byte, 1) > 0) {
    }
    store_relaxed(&over, true);
    if (task) ASSERT_OK(weft_join(task, &got));
    crew_stop(&crew);
}

static struct traced traced_start(struct program p)
{
    struct traced t;
    int quit[2];
    int said[2];
    ASSERT_OK(pipe(quit));
    ASSERT_OK(pipe(said));
    t.pid = fork();
    ASSERT(t.pid >= 0);
    if (t.pid == 0) {
        close(quit[1]);
        dup2(said[1], STDERR_FILENO);
        run_program(&p, quit[0]);
        _exit(0);
    }
    close(quit[0]);
    close(said[1]);
    t.quit = quit[1];
    t.said = fdopen(said[0], "r");
    ASSERT(t.said != NULL);
    return t;
}

/* It must end, and end well; what it still says is read. */
static void traced_stop(struct traced *t)
{
    char line[8192];
    int status;
    close(t->quit);
    while (fgets(line, sizeof(line), t->said))
        ASSERT_OK(strncmp(line, "SCHED ", 6));
    fclose(t->said);
    ASSERT_EQ(waitpid(t->pid, &status, 0), t->pid);
    ASSERT(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
}

struct said {
    long uptime_ms;
    unsigned workers;
    unsigned sleeping;
    unsigned long polls;
};

static struct said read_line(struct traced *t, const char *name)
{
    char line[8192];
    char who[16];
    char queues[64];
    struct said s = {0};
    unsigned searching, still;
    char inject[8];
    unsigned long tasks, queued, spawned, completed, steals, parks, spills, rescued, turns;
    ASSERT(fgets(line, sizeof(line), t->said) != NULL);
    int count = sscanf(
        line,
        "SCHED %15s %ldms: workers=%u sleeping=%u searching=%u still=%u inject=%7s tasks=%lu queued=%lu [%63[0-9 ]]",
        who, &s.uptime_ms, &s.workers, &s.sleeping, &searching, &still, inject, &tasks, &queued,
        queues);
    ASSERT_EQ(count, 10);
    const char *rest = strchr(line, ']');
    count = sscanf(
        rest,
        "] spawned=+%lu completed=+%lu polls=+%lu steals=+%lu parks=+%lu spills=+%lu rescued=+%lu turns=+%lu",
        &spawned, &completed, &s.polls, &steals, &parks, &spills, &rescued, &turns);
    ASSERT_EQ(count, 8);
    ASSERT_STR(who, name);
    return s;
}

TEST(schedtrace_tells_of_a_busy_runtime)
{
    for (int workers = 1; workers <= 2; workers++) {
        struct traced t =
            traced_start((struct program){.workers = workers, .name = "busy", .busy = true});
        long last = 0;
        int moved = 0;
        while (moved < 20) { /* the task yields for ever: sooner or later each line has polls */
            struct said s = read_line(&t, "busy");
            ASSERT_EQ(s.workers, workers);
            ASSERT(s.uptime_ms > last);
            last = s.uptime_ms;
            moved += s.polls > 0;
        }
        traced_stop(&t);
    }
}

/* One without threads says it at the end of a turn. The crew's thread turns it: 256 polls each. */
TEST(schedtrace_tells_of_a_current_thread_runtime)
{
    struct traced t =
        traced_start((struct program){.workers = -1, .name = "turned", .busy = true});
    long last = 0;
    int moved = 0;
    while (moved < 20) {
        struct said s = read_line(&t, "turned");
        ASSERT_EQ(s.workers, 1);
        ASSERT_EQ(s.sleeping, 0);
        ASSERT(s.uptime_ms > last);
        last = s.uptime_ms;
        moved += s.polls > 0;
    }
    traced_stop(&t);
}

/* Also when all sleep, the monitor beside them; and when it looks for nothing. */
TEST(schedtrace_tells_of_a_runtime_that_sleeps)
{
    static const int monitor[] = {10, 5000, -1};
    for (int i = 0; i < 3; i++) {
        struct traced t =
            traced_start((struct program){.workers = 2, .name = "idle", .monitor = monitor[i]});
        int quiet = 0;
        while (quiet < 30) {
            struct said s = read_line(&t, "idle");
            quiet += s.sleeping == 2 && s.polls == 0;
        }
        traced_stop(&t);
    }
}
