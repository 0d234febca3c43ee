// SPDX-License-Identifier: MIT
//
// What the page promises to C++: blocks and select. Arguments of arms are given in order.
#include <weft/weft.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(fact) ((fact) ? (void)0 : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact), std::exit(1)))

static weft_token stop;

static int sleeps()
{
    return weft_sleep(weft_secs(99));
}

static int selects()
{
    weft_task *t = weft_go(sleeps);
    struct weft_wait w;
    struct weft_sleep s;
    struct weft_token_wait quit;
    int r = 1;

    int which = weft_select(weft_arm(w, weft_wait, t), weft_arm(s, weft_sleep, weft_us(1)),
                            weft_when(r == 0, weft_arm(quit, weft_token_wait, &stop)));
    CHECK(which == 1 && s.ret == 0 && w.ret == -ECANCELED);
    CHECK(weft_select_biased(weft_arm(quit, weft_token_wait, &stop), weft_otherwise) == 1);
    CHECK(weft_then(weft_arm(s, weft_sleep, 0), weft_arm(s, weft_sleep, 0)) == 0);
    WEFT_TIMEOUT(weft_us(1)) CHECK(weft_all(weft_arm(w, weft_wait, t), weft_arm(s, weft_sleep, 1)) == -ETIME);
    WEFT_DEADLINE(weft_now()) CHECK(weft_try_all(weft_arm(w, weft_wait, t)) == -ETIME);
    WEFT_UNTIL(&stop) {
        weft_token_cancel(&stop);
        CHECK(weft_yield() == -ECANCELED);
        WEFT_SHIELD(weft_secs(1)) CHECK(weft_sleep(1) == 0);
    }
    CHECK(weft_token_reason(&stop) == -ECANCELED);
    weft_cancel(t);
    return weft_join(t, &r) == 0 && r == -ECANCELED ? 0 : 1;
}

/* A loop with arms that are kept from round to round: an interval that brings it on, a timer that ends it, a token that nobody cancels. */
static int loops()
{
    weft_token other = {};
    weft_interval every = weft_interval_of(weft_us(10));
    struct weft_tick tick;
    struct weft_sleep quiet, never;
    struct weft_token_wait quit;
    int ticks = 0, which;

    weft_start(tick, weft_tick, &every);
    weft_start(quiet, weft_sleep, weft_secs(99));
    weft_start(quit, weft_token_wait, &other);
    do {
        which = weft_select(weft_keep(tick, weft_tick), weft_keep(quiet, weft_sleep), weft_keep(quit, weft_token_wait));
        if (which == 0 && ++ticks == 3) weft_sleep_reset(&quiet, weft_now());
    } while (which == 0);
    CHECK(which == 1 && quiet.ret == 0 && ticks >= 3);
    weft_settle(tick, weft_tick);
    weft_settle(quiet, weft_sleep);
    weft_settle(quit, weft_token_wait);
    CHECK(quit.ret == -ECANCELED);
    weft_token_done(&other); /* nobody waits any more */
    weft_start(never, weft_sleep, weft_secs(99));
    CHECK(weft_settle(never, weft_sleep) == 0); /* it never began */
    return 0;
}

struct job {
    int number;
};
typedef WEFT_CHAN(job) job_chan;
typedef WEFT_BROADCAST(int) int_cast;
typedef WEFT_WATCH(int) int_watch;

static int sums(job_chan *jobs)
{
    job one;
    int sum = 0, r;
    while ((r = weft_recv(jobs, &one)) > 0) sum += one.number;
    return r < 0 ? r : sum;
}

static int channels()
{
    job_chan *jobs = nullptr, *done = nullptr;
    const job one = {1};
    job got = {0}, many[2];
    int r = 0;

    CHECK(weft_chan_new(2, &jobs) == 0 && weft_chan_oneshot(&done) == 0);
    weft_task *t = weft_go(sums, jobs);
    for (int i = 0; i < 10; i++) CHECK(weft_send(jobs, &one) == 0);
    CHECK(weft_reserve(jobs) == 0 && weft_permit_send(jobs, &one) == 0);
    CHECK(weft_chan_close(jobs) == 0 && weft_send(jobs, &one) == -EPIPE);
    CHECK(weft_join(t, &r) == 0 && r == 11);

    struct weft_recv rx;
    struct weft_sleep s;
    CHECK(weft_select(weft_arm(rx, weft_recv, weft_on(done, &got)), weft_arm(s, weft_sleep, weft_us(1))) == 1);
    CHECK(weft_try_send(done, &one) == 0 && weft_recv_many(done, many, 2) == 1 && many[0].number == 1);
    weft_chan_free(jobs);
    weft_chan_free(done);
    job_chan *none = nullptr;
    CHECK(weft_send(none, &one) == -EINVAL && weft_recv(none, &got) == -EINVAL && weft_pull(none, &got) == -EINVAL);

    int_cast *cast = nullptr;
    int_watch *watch = reinterpret_cast<int_watch *>(8); /* whatever it is before it is made */
    int value = 0, next = 5;
    CHECK(weft_broadcast_new(4, &cast) == 0 && weft_watch_new(&next, &watch) == 0);
    weft_cursor at = weft_broadcast_now(cast), seen = {0, 0};
    CHECK(weft_broadcast_send(cast, &next) == 0 && weft_broadcast_recv(cast, &at, &value) == 1 && value == 5);
    CHECK(weft_watch_changed(watch, &seen, &value) == 1 && weft_watch_get(watch, &value) == 1);
    weft_broadcast_free(cast);
    weft_watch_free(watch);
    return 0;
}

static int length(const char *text)
{
    int n = 0;
    while (text[n]) n++;
    return n;
}

static int blocks()
{
    CHECK(weft_blocking(length, "abc") == 3);
    CHECK(weft_blocking_as((.name = "length"), length, "abcd") == 4);
    return 0;
}

static weft_mutex mutex = WEFT_MUTEX_INIT;
static weft_cond cond = WEFT_COND_INIT;
static weft_rwlock rwlock = WEFT_RWLOCK_INIT;
static weft_sem sem = WEFT_SEM_INIT(2);
static weft_notify bell = WEFT_NOTIFY_INIT;
static weft_event event = WEFT_EVENT_INIT;
static weft_wg group = WEFT_WG_INIT(1);
static weft_barrier barrier = WEFT_BARRIER_INIT(1);
static weft_cell cell = WEFT_CELL_INIT;

static int shares()
{
    struct weft_lock lock;
    struct weft_sem_acquire acquire;
    struct weft_cond_wait wait;
    struct weft_sleep s;
    void *value = nullptr;

    CHECK(weft_all(weft_arm(lock, weft_lock, &mutex), weft_arm(acquire, weft_sem_acquire, &sem, uint64_t{2})) == 0);
    CHECK(weft_select(weft_arm(wait, weft_cond_wait, &cond, &mutex), weft_arm(s, weft_sleep, weft_us(1))) == 1);
    CHECK(weft_unlock(&mutex) == 0);
    weft_sem_release(&sem, 2);
    CHECK(weft_read_lock(&rwlock) == 0 && weft_read_unlock(&rwlock) == 0);
    CHECK(weft_write_lock(&rwlock) == 0 && weft_write_unlock(&rwlock) == 0);
    weft_notify_one(&bell);
    weft_event_set(&event);
    weft_wg_finish(&group);
    CHECK(weft_notify_wait(&bell) == 0 && weft_event_wait(&event) == 0 && weft_wg_wait(&group) == 0);
    CHECK(weft_barrier_wait(&barrier) == 1);
    CHECK(weft_cell_enter(&cell, &value) == 1 && weft_cell_leave(&cell, &sem) == 0);
    CHECK(weft_cell_get(&cell) == &sem);
    return 0;
}

static int counts(int *at)
{
    int r = weft_yield();
    *at += 1;
    return r;
}

static int refuses(int with)
{
    return with;
}

static int start_one(weft_scope *s, void *arg)
{
    return weft_go_in(s, counts, static_cast<int *>(arg));
}

static int leaves_early(int *n)
{
    WEFT_SCOPE(s)
    {
        CHECK(weft_go_in(s, counts, n) == 0);
        return *n;
    }
    return -1;
}

/* A block that an exception leaves: it cancels and waits, as the others do. */
static void throws(int *n)
{
    WEFT_SCOPE(s)
    {
        CHECK(weft_go_in(s, counts, n) == 0);
        throw 7;
    }
}

static int scopes()
{
    int n[4] = {0, 0, 0, 0};
    int r = 1;

    WEFT_SCOPE(s) CHECK(weft_go_in(s, counts, &n[0]) == 0);
    CHECK(n[0] == 1);
    WEFT_SCOPE(s, .error = &r, .timeout = weft_secs(60), .limit = 2)
    {
        for (int i = 1; i < 4; i++)
            CHECK(weft_go_in(s, counts, &n[i]) == 0);
        CHECK(weft_scope_reason(s) == 0 && weft_scope_count(s) <= 2);
    }
    CHECK(r == 0 && n[1] + n[2] + n[3] == 3);
    WEFT_SCOPE(s, .error = &r)
    {
        CHECK(weft_go_in(s, sleeps) == 0 &&
              weft_go_in_as(s, (.name = "refuses"), refuses, -EIO) == 0);
        CHECK(weft_sleep(weft_secs(99)) == -ECANCELED);
    }
    CHECK(r == -EIO);
    CHECK(leaves_early(&n[0]) == 1 && n[0] == 2);
    try {
        throws(&n[0]);
    } catch (int thrown) {
        CHECK(thrown == 7 && n[0] == 3);
    }
    weft_scope own = {};
    weft_scope_init(&own, .limit = 1);
    CHECK(weft_go_in(&own, sleeps) == 0 && weft_try_go_in(&own, sleeps) == -EAGAIN);
    CHECK(weft_scope_cancel(&own) && weft_scope_join(&own) == 0 && weft_scope_room(&own) == 0);
    CHECK(weft_supervise(start_one, &n[0], 1, 0) == 0 && n[0] == 4);
    return 0;
}

static int app()
{
    weft_token_hook hook = {nullptr, nullptr};
    int r = 1;
    CHECK(weft_join(weft_go(selects), &r) == 0 && r == 0);
    CHECK(weft_join(weft_go(loops), &r) == 0 && r == 0);
    CHECK(loops() == 0);
    CHECK(weft_join(weft_go(channels), &r) == 0 && r == 0);
    CHECK(weft_join(weft_go(blocks), &r) == 0 && r == 0);
    CHECK(weft_join(weft_go(shares), &r) == 0 && r == 0);
    CHECK(weft_join(weft_go(scopes), &r) == 0 && r == 0);
    CHECK(weft_token_hook_off(&hook) == 1);
    weft_token_done(&stop);
    return r;
}

WEFT_MAIN(app)
