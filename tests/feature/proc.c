/* SPDX-License-Identifier: MIT
 *
 * Child processes: streams, ends, signals; everything at once without a deadlock; given up at any moment, and nothing is left behind.
 */
#include "storm.h"
#include "sys/probe.h"
#include "test.h"
#include "town.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#define ARGV(...) ((const char *[]){__VA_ARGS__, NULL})
#define SH(text)  ARGV("sh", "-c", text)

/* Not where there is no pidfd: a kernel before 5.3, Valgrind 3.19. */
static void need_pidfd(void)
{
    int r = weft__probe()->pidfd_open;
    if (r < 0) TEST_SKIP("pidfd_open: %d", r);
}

static void each(void (*body)(struct crew *crew))
{
    need_pidfd();
    crew_each(body);
}

static void no_children(void)
{
    ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1); /* not even a zombie */
}

/* A close leaves one that runs to a task of its own: it is gone before long. */
static void no_children_soon(void)
{
    CREW_UNTIL(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) < 0);
}

/* ---- as calls ---- */

static int talks(void)
{
    weft_stream *in;
    weft_stream *out;
    weft_proc *p;
    char said[32] = {0};
    int status = -1;

    ASSERT_OK(weft_proc_start(&(weft_proc_opts){.argv = ARGV("cat"), .to_in = &in, .from_out = &out}, &p));
    ASSERT_GE(weft_proc_pid(p), 2);
    ASSERT_EQ(weft_write_all(in, "hello", 5), 5);
    ASSERT_EQ(weft_read_exact(out, said, 5), 5);
    ASSERT(strcmp(said, "hello") == 0);
    weft_close(in);
    ASSERT_EQ(weft_read(out, said, sizeof(said)), 0);
    ASSERT_OK(weft_proc_wait(p, &status));
    ASSERT_EQ(status, 0);
    status = -1;
    ASSERT_OK(weft_proc_wait(p, &status)); /* again */
    ASSERT_OK(weft_proc_wait(p, NULL));
    ASSERT_EQ(status, 0);
    ASSERT_EQ(weft_proc_kill(p, SIGTERM), -ESRCH);
    weft_close(out);
    weft_proc_close(p);
    return 0;
}

static int is_killed(void)
{
    weft_proc *p;
    int status = 0;
    ASSERT_OK(weft_proc_start(&(weft_proc_opts){.argv = ARGV("sleep", "1000"), .in = WEFT_PROC_NULL}, &p));
    WEFT_TIMEOUT(weft_ms(1)) ASSERT_EQ(weft_proc_wait(p, &status), -ETIME);
    ASSERT_EQ(weft_proc_kill(p, 1000), -EINVAL);
    ASSERT_OK(weft_proc_kill(p, SIGTERM));
    ASSERT_OK(weft_proc_wait(p, &status));
    ASSERT(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGTERM);
    weft_proc_close(p);
    return 0;
}

/* Much more than a pipe holds, both ways, and on both outputs. */
static int runs(void)
{
    enum { BYTES = 300000 };
    weft_proc_output all;
    char *input = malloc(BYTES);
    memset(input, 'x', BYTES);
    ASSERT_OK(weft_proc_run(&(weft_proc_opts){.argv = SH("tee /dev/stderr; exit 3")}, input, BYTES, 1 << 20, &all));
    ASSERT_EQ(WEXITSTATUS(all.status), 3);
    ASSERT_EQ(all.out_bytes, BYTES);
    ASSERT_EQ(all.err_bytes, BYTES);
    ASSERT(memcmp(all.out, input, BYTES) == 0);
    ASSERT(memcmp(all.err, input, BYTES) == 0);
    ASSERT_EQ(all.out[BYTES], 0);
    weft_free(all.out);
    weft_free(all.err);
    free(input);
    return 0;
}

static int runs_otherwise(void)
{
    weft_proc_output all = {0};
    ASSERT_OK(weft_proc_run(&(weft_proc_opts){.argv = SH("echo out; echo err >&2"), .err = WEFT_PROC_OUT}, NULL, 0, 100, &all));
    ASSERT(strcmp(all.out, "out\nerr\n") == 0);
    ASSERT(!all.err);
    weft_free(all.out);
    /* One that does not read its input. */
    char *input = calloc(1, 200000);
    ASSERT_OK(weft_proc_run(&(weft_proc_opts){.argv = ARGV("true")}, input, 200000, 100, &all));
    ASSERT_EQ(all.out_bytes, 0);
    ASSERT_EQ(all.out[0], 0);
    weft_free(all.out);
    weft_free(all.err);
    free(input);
    /* One that says too much, and would for ever. */
    ASSERT_EQ(weft_proc_run(&(weft_proc_opts){.argv = ARGV("yes"), .in = WEFT_PROC_NULL}, NULL, 0, 10000, &all), -EMSGSIZE);
    ASSERT_OK(weft_proc_run(&(weft_proc_opts){.argv = SH("printf 12345")}, NULL, 0, 5, &all)); /* as much as it may */
    ASSERT_EQ(all.out_bytes, 5);
    weft_free(all.out);
    weft_free(all.err);
    ASSERT_OK(weft_proc_run(&(weft_proc_opts){.argv = SH("echo $A; pwd"), .env = ARGV("A=b"), .dir = "/usr"}, NULL, 0, 100, &all));
    ASSERT(strcmp(all.out, "b\n/usr\n") == 0);
    weft_free(all.out);
    weft_free(all.err);
    return 0;
}

static int is_refused(void)
{
    weft_proc *p = NULL;
    weft_proc_output all;
    weft_stream *in = NULL;
    ASSERT_EQ(weft_proc_start(&(weft_proc_opts){.argv = ARGV("/nowhere")}, &p), -ENOENT);
    ASSERT_EQ(weft_proc_start(&(weft_proc_opts){.argv = ARGV("true"), .dir = "/nowhere", .to_in = &in}, &p), -ENOENT);
    ASSERT_EQ(weft_proc_start(&(weft_proc_opts){.argv = ARGV("true"), .in = -7}, &p), -EINVAL);
    ASSERT_EQ(weft_proc_start(&(weft_proc_opts){.argv = NULL}, &p), -EINVAL);
    ASSERT_EQ(weft_proc_start(NULL, &p), -EINVAL);
    ASSERT_EQ(weft_proc_wait(NULL, NULL), -EINVAL);
    ASSERT_EQ(weft_proc_kill(NULL, SIGTERM), -EINVAL);
    ASSERT_EQ(weft_proc_pid(NULL), -EINVAL);
    ASSERT_EQ(weft_proc_run(&(weft_proc_opts){.argv = ARGV("/nowhere")}, NULL, 0, 1, &all), -ENOENT);
    weft_proc_close(NULL);
    ASSERT(!p && !in);
    return 0;
}

static void calls(struct crew *crew)
{
    static int (*const all[])(void) = {talks, is_killed, runs, runs_otherwise, is_refused};
    weft_task *task[5];
    int got;
    (void)crew;
    for (int i = 0; i < 5; i++)
        task[i] = weft_go(all[i]);
    for (int i = 0; i < 5; i++)
        ASSERT_OK(weft_join(task[i], &got));
    ASSERT_EQ(talks(), 0); /* a thread that has entered it */
    no_children();
}

TEST(proc_calls)
{
    each(calls);
}

/* ---- awaited ---- */

struct awaits {
    WEFT_FRAME(int);
    weft_proc *p;
    weft_stream *out;
    weft_proc_opts opts;
    const char *argv[4];
    char said[16];
    int status;
    weft_proc_output all;
    struct weft_proc_start start;
    struct weft_proc_wait wait;
    struct weft_read read;
    struct weft_proc_run run;
};
static weft_async(awaits)
{
    weft_begin;
    f->argv[0] = "echo";
    f->argv[1] = "seven";
    f->opts = (weft_proc_opts){.argv = f->argv, .from_out = &f->out};
    weft_await(f->start, weft_proc_start, &f->opts, &f->p);
    ASSERT_OK(f->start.ret);
    weft_await(f->read, weft_read, f->out, f->said, sizeof(f->said));
    ASSERT_EQ(f->read.ret, 6);
    weft_await(f->wait, weft_proc_wait, f->p, &f->status);
    ASSERT_OK(f->wait.ret);
    ASSERT_EQ(f->status, 0);
    weft_close(f->out);
    weft_proc_close(f->p);
    f->opts.from_out = NULL;
    weft_await(f->run, weft_proc_run, .opts = &f->opts, .most = 100, .into = &f->all);
    ASSERT_OK(f->run.ret);
    ASSERT(strcmp(f->all.out, "seven\n") == 0);
    weft_free(f->all.out);
    weft_free(f->all.err);
    weft_return(1);
    weft_end;
}

static void awaited(struct crew *crew)
{
    weft_task *task[4];
    int got;
    (void)crew;
    for (int i = 0; i < 4; i++)
        task[i] = weft_spawn(awaits);
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 1);
    }
    no_children();
}

TEST(proc_awaited)
{
    each(awaited);
}

/* ---- closed, given up ---- */

static void closed(struct crew *crew)
{
    weft_proc *p;
    weft_stream *in;
    (void)crew;
    ASSERT_OK(weft_proc_start(&(weft_proc_opts){.argv = SH("sleep 1000 & wait"), .group = true, .kill_on_close = true}, &p));
    weft_proc_close(p);
    no_children_soon();
    ASSERT_OK(weft_proc_start(&(weft_proc_opts){.argv = ARGV("cat"), .to_in = &in}, &p));
    weft_proc_close(p); /* goes on */
    weft_close(in);     /* and ends */
    no_children_soon();
}

TEST(proc_closed_leaves_nothing)
{
    each(closed);
}

/* Unless it is to be killed, one that was closed goes on: it answers, until its input ends. */
static void goes_on(struct crew *crew)
{
    weft_proc *p;
    weft_stream *in;
    weft_stream *out;
    char b = 0;
    (void)crew;
    ASSERT_OK(weft_proc_start(
        &(weft_proc_opts){.argv = ARGV("cat"), .to_in = &in, .from_out = &out}, &p));
    weft_proc_close(p);
    ASSERT_EQ(weft_write(in, "x", 1), 1);
    ASSERT_EQ(weft_read(out, &b, 1), 1);
    ASSERT_EQ(b, 'x');
    weft_close(in);
    ASSERT_EQ(weft_read(out, &b, 1), 0);
    weft_close(out);
    no_children_soon();
}

TEST(proc_closed_goes_on_unless_it_is_to_be_killed)
{
    each(goes_on);
}

static int runs_for_ever(void)
{
    weft_proc_output all;
    return weft_proc_run(&(weft_proc_opts){.argv = SH("cat; sleep 1000"), .group = true}, "some", 4, 1000, &all);
}

/* At its start, while it talks, while it waits: the child is gone when the answer is there. */
static void given_up(struct crew *crew)
{
    weft_task *task[4];
    int got;
    uint64_t random = test_seed();
    (void)crew;
    for (uint64_t round = 0; round < test_scaled(10); round++) {
        for (int i = 0; i < 4; i++)
            task[i] = weft_go(runs_for_ever);
        for (int i = 0; i < 4; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            for (uint64_t k = random >> 57; k > 0; k--)
                sched_yield();
            weft_cancel(task[i]);
        }
        for (int i = 0; i < 4; i++) {
            ASSERT_OK(weft_join(task[i], &got));
            ASSERT_EQ(got, -ECANCELED);
        }
    }
    no_children();
}

TEST(proc_given_up_leaves_nothing)
{
    each(given_up);
}

/* The same by tasks whose budget is over with each operation: what is told to stop before it has begun lets others run first. */
TEST(proc_given_up_without_budget_leaves_nothing)
{
    need_pidfd();
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start_with(
            &crew, &(weft_rt_opts){.workers = crew_sizes[i], .seed = test_seed() | 1, .budget = 1});
        given_up(&crew);
        crew_stop(&crew);
    }
}

/* One that ends when it is killed, and not before. */
static weft_proc_opts for_ever(weft_stream **in, weft_stream **out)
{
    static const char *const argv[] = {"sleep", "1000", NULL};
    return (weft_proc_opts){.argv = argv, .to_in = in, .from_out = out, .kill_on_close = true};
}

/* It runs, or nothing was given. */
static int settles(int r, weft_proc *p, weft_stream *in, weft_stream *out)
{
    ASSERT_EQ(r == 0, p != NULL);
    ASSERT_EQ(r == 0, in != NULL);
    ASSERT_EQ(r == 0, out != NULL);
    weft_close(in);
    weft_close(out);
    weft_proc_close(p);
    return r;
}

static int starts_one(void)
{
    weft_proc *p = NULL;
    weft_stream *in = NULL;
    weft_stream *out = NULL;
    weft_proc_opts opts = for_ever(&in, &out);
    int r = weft_proc_start(&opts, &p);
    return settles(r, p, in, out);
}

struct starting {
    WEFT_FRAME(int);
    weft_proc *p;
    weft_stream *in;
    weft_stream *out;
    weft_proc_opts opts;
    struct weft_proc_start start;
};
static weft_async(starting)
{
    weft_begin;
    f->opts = for_ever(&f->in, &f->out);
    weft_await(f->start, weft_proc_start, &f->opts, &f->p);
    weft_return(settles(f->start.ret, f->p, f->in, f->out));
    weft_end;
}

static weft_task *start_one(void *of, uint32_t i, bool stackless)
{
    (void)of, (void)i;
    return stackless ? weft_spawn(starting) : weft_go(starts_one);
}

/* With few threads for its job, so that many a start is given up before that has begun, and many another behind it: whatever its answer, no child is left, and no
 * descriptor, which the harness looks for. */
TEST_WITH(proc_start_given_up_leaves_nothing, .timeout_s = 120)
{
    need_pidfd();
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        crew_start_with(&crew, &(weft_rt_opts){.workers = crew_sizes[i],
                                               .seed = test_seed() | 1,
                                               .blocking_threads = 2});
        struct storm_sum sum = storm(start_one, NULL, (uint32_t)test_scaled(60), NULL);
        ASSERT_EQ(sum.other, 0);
        no_children_soon();
        crew_stop(&crew);
    }
}

/* ---- what it has ---- */

/* What this process was itself given by others would be there, too. */
static void keep_to_ourselves(void)
{
    for (int fd = 3; fd < 1024; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* One of each kind, and what the runtime has for itself: its ring for files is there once one of them was used. */
struct all_kinds {
    struct town_gate gate;
    weft_stream *streams[TOWN_KINDS][2];
    weft_udp *udp;
    weft_dgram *dgrams[2];
    weft_signal *signal;
    weft_file *files[2];
    weft_stream *in;
    int received;
};

static void all_open(struct all_kinds *all)
{
    weft_fds fds = {.fd = &all->received, .room = 1};
    char b;
    town_open(&all->gate);
    for (int kind = 0; kind < TOWN_KINDS; kind++)
        town_pair((enum town_kind)kind, all->streams[kind]);
    ASSERT_OK(weft_udp_bind("127.0.0.1:0", &all->udp));
    ASSERT_OK(weft_dgram_pair(&all->dgrams[0], &all->dgrams[1]));
    ASSERT_OK(weft_signal_open(SIGUSR1, &all->signal));
    ASSERT_OK(weft_file_temp(NULL, &all->files[0]));
    ASSERT_EQ(weft_file_write(all->files[0], "x", 1, 0), 1);
    ASSERT_OK(weft_file_open("/proc/self/exe", O_RDONLY, 0, &all->files[1]));
    ASSERT_OK(weft_stdin(&all->in));
    ASSERT_EQ(weft_unix_send_fds(all->streams[TOWN_UNIX][0], "x", 1, (int[]){0}, 1), 1);
    ASSERT_EQ(weft_unix_recv_fds(all->streams[TOWN_UNIX][1], &b, 1, &fds), 1);
    ASSERT_EQ(fds.count, 1);
}

static void all_close(struct all_kinds *all)
{
    weft_close(all->gate.listener);
    for (int kind = 0; kind < TOWN_KINDS; kind++)
        for (int i = 0; i < 2; i++)
            weft_close(all->streams[kind][i]);
    weft_close(all->udp);
    weft_close(all->dgrams[0]);
    weft_close(all->dgrams[1]);
    weft_signal_close(all->signal);
    weft_file_close(all->files[0]);
    weft_file_close(all->files[1]);
    weft_close(all->in);
    ASSERT_OK(close(all->received));
}

/* Its three, and the folder that it reads: that is 3, if nothing else is open. */
static int sees_three(void)
{
    weft_proc_output said;
    ASSERT_OK(weft_proc_run(&(weft_proc_opts){.argv = ARGV("ls", "/proc/self/fd")}, "some", 4, 1000,
                            &said));
    ASSERT_STR(said.out, "0\n1\n2\n3\n");
    weft_free(said.out);
    weft_free(said.err);
    return 0;
}

/* Several at once, so that the pipes of one are open while another starts. */
static void sees_its_own(struct crew *crew)
{
    struct all_kinds all;
    weft_task *task[4];
    int r;
    (void)crew;
    all_open(&all);
    for (int i = 0; i < 4; i++)
        task[i] = weft_go(sees_three);
    for (int i = 0; i < 4; i++)
        ASSERT_OK(weft_join(task[i], &r));
    all_close(&all);
}

TEST(proc_sees_nothing_but_its_three)
{
    keep_to_ourselves();
    each(sees_its_own);
}

static int waits(weft_proc *p)
{
    int status = -1;
    int r = weft_proc_wait(p, &status);
    return r < 0 ? r : WEXITSTATUS(status);
}

/* Many wait for one; those who give up take nothing from the others. */
static void many(struct crew *crew)
{
    weft_proc *p;
    weft_stream *in;
    weft_task *task[8];
    int got;
    (void)crew;
    ASSERT_OK(weft_proc_start(&(weft_proc_opts){.argv = SH("read line; exit 5"), .to_in = &in}, &p));
    for (int i = 0; i < 8; i++)
        task[i] = weft_go(waits, p);
    for (int i = 0; i < 8; i += 2) {
        weft_cancel(task[i]);
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, -ECANCELED);
    }
    ASSERT_EQ(weft_write_all(in, "\n", 1), 1);
    for (int i = 1; i < 8; i += 2) {
        ASSERT_OK(weft_join(task[i], &got));
        ASSERT_EQ(got, 5);
    }
    weft_close(in);
    weft_proc_close(p);
    no_children();
}

TEST(proc_is_waited_for_by_many)
{
    each(many);
}

TEST(proc_without_a_runtime)
{
    weft_proc *p = NULL;
    ASSERT_EQ(weft_proc_start(&(weft_proc_opts){.argv = ARGV("true")}, &p), -ENXIO);
    ASSERT(!p);
}
