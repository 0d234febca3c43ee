/* SPDX-License-Identifier: MIT
 *
 * A program of everything: a random tree of scopes, whose tasks of both kinds use locks, semaphores, conditions, channels of each kind, casts, delay queues, sets,
 * blocking jobs, tokens, and combinators of these, each inside of a region of its own, and are cancelled at random: by deadlines, scopes, tokens, joiners, handles, or by
 * the runtime's stop in the midst of it. On a clock that stands, so that time passes only when nobody can do anything else: whoever waits has a deadline, and a wake
 * that is lost makes the clock run on to it, which for what surely comes back is an hour, and is told.
 *
 * What must hold: everything ends; what was sent was received, or lies there; what loses in a select has taken nothing; locks exclude, permits are back, jobs that
 * were answered have run and arguments that were given away are disposed of once; nobody is left in any list (whoever ends it aborts then); as many tasks have ended as
 * were spawned.
 */
#include "world.h"

enum { DEPTH = 3 };

typedef WEFT_SET(int) int_set;

/* ---- the same in fibers, as calls ----------------------------------------------------------------------------------- */

static int calls_a_job(uint64_t *random)
{
    if (pool_random(random, 2)) {
        if (weft_blocking(works, &of.jobs_ran) == 1) fetch_add_relaxed(&of.jobs_answered, 1);
        return 0;
    }
    uint64_t *gift = new_gift();
    gift_is_answered(gift, weft_blocking_as((.dispose = gift_goes), works_with_gift, gift));
    return 0;
}

/* A timer that is kept from round to round. */
static int selects_in_a_loop(uint64_t *random)
{
    struct weft_sleep idle;
    struct weft_recv in, meets;
    uint64_t got = 0, met = 0;
    int won;

    weft_start(idle, weft_sleep, span(random));
    do {
        won = weft_select(weft_keep(idle, weft_sleep), weft_arm(in, weft_recv, of.pipe[2], &got),
                          weft_arm(meets, weft_recv, of.pipe[0], &met));
        if (in.ret > 0) went_out(&of.passed[2], got);
        if (meets.ret > 0) went_out(&of.passed[0], met);
    } while (won > 0);
    return weft_settle(idle, weft_sleep);
}

static int looks_once(void)
{
    uint64_t got = 0;
    uint64_t id = new_id();
    int won = weft_select(weft_case(weft_recv, of.pipe[3], &got), weft_otherwise);
    if (won == 0 && got > 0) went_out(&of.passed[3], got);
    int r = weft_try_send(of.pipe[0], &id);
    if (r == 0) came_in(&of.passed[0], id);
    return won < 0 ? won : 0;
}

static int locks_in_a_shield(uint64_t *random)
{
    int r = weft_lock(&of.mutex);
    if (r < 0) return r;
    lock_begins();
    WEFT_SHIELD(span(random))(void) weft_sleep(span(random));
    lock_ends();
    return 0;
}

/* ---- the tree -------------------------------------------------------------------------------------------------------- */

static uint64_t seed_for_child(uint64_t *random)
{
    return ((uint64_t)pool_random(random, UINT32_MAX) << 32 | pool_random(random, UINT32_MAX)) | 1;
}

static int node_on_a_fiber(int depth, uint64_t random);
static weft_pollfn node_poll;

/* The body of a scope, stackless: starts children, perhaps stops them, perhaps fails. */
struct starts {
    WEFT_FRAME(int);
    weft_scope *scope;
    int depth;
    uint64_t random;
    uint32_t left;
    struct weft_scope_room room;
    struct weft_sleep sleep;
};

struct node {
    WEFT_FRAME(int);
    int depth;
    uint64_t random;
    uint32_t left;
    uint32_t what;
    int kind;
    int error;
    weft_task *errand;
    struct op op;
    struct starts starts;
    weft_scope scope;
    struct weft_scope_run run;
    struct weft_timeout timeout;
    struct weft_deadline deadline;
    struct weft_until until;
    struct weft_shield shield;
    struct weft_wait wait;
    struct weft_join join;
};

static int starts_one(weft_scope *scope, uint64_t *random, int depth)
{
    if (pool_random(random, 2))
        return weft_go_in(scope, node_on_a_fiber, depth, seed_for_child(random));
    return weft_spawn_in(scope, node, .depth = depth, .random = seed_for_child(random));
}

static void stops_some(weft_scope *scope, uint64_t *random)
{
    uint32_t how = pool_random(random, 8);
    if (how == 0) (void)weft_scope_cancel(scope);
    if (how == 1) (void)weft_scope_fail(scope, -EPROTO);
    if (how == 2 && pool_random(random, 8) == 0)
        (void)weft_token_cancel(&of.token[1 + pool_random(random, TOKENS - 1)]);
}

static weft_async(starts)
{
    int r;
    weft_begin;
    for (f->left = 1 + pool_random(&f->random, 3); f->left > 0;) {
        r = starts_one(f->scope, &f->random, f->depth);
        if (r == 0) f->left--;
        if (r == 0) continue;
        if (r != -EAGAIN) weft_return(0);
        weft_await(f->room, weft_scope_room, f->scope);
        if (f->room.ret < 0) weft_return(f->room.ret);
    }
    if (pool_random(&f->random, 2)) weft_await(f->sleep, weft_sleep, span(&f->random));
    stops_some(f->scope, &f->random);
    weft_return(0);
    weft_end;
}

static weft_task *an_errand(uint64_t *random, int depth)
{
    uint64_t seed = seed_for_child(random);
    return pool_random(random, 2) ? weft_go(node_on_a_fiber, depth, seed)
                                  : weft_spawn(node, .depth = depth, .random = seed);
}

static weft_scope_opts scope_shape(uint64_t *random, int *error)
{
    uint32_t shape = pool_random(random, 16);
    return (weft_scope_opts){.error = shape & 1 ? error : NULL,
                             .timeout = shape & 2 ? 1 + span(random) : 0,
                             .limit = shape & 4 ? 1 + pool_random(random, 2) : 0,
                             .first_success = shape & 8};
}

/* The last of them open scopes and send others. */
enum { IN_TIME = 3 * OPS, IN_SCOPE = IN_TIME + 6, NODE_KINDS = IN_SCOPE + 8 };

/* Each thing has a bound in time: the clock stands while anybody else can go on. */
static weft_async(node)
{
    weft_scope_opts o;
    weft_begin;
    for (f->left = 1 + pool_random(&f->random, 6); f->left > 0; f->left--) {
        fetch_add_relaxed(&of.steps, 1);
        f->what = pool_random(&f->random, NODE_KINDS);
        f->kind = (int)(f->what % OPS);
        if (f->what < OPS) {
            weft_await(f->timeout, weft_timeout, span_for(&f->random, f->kind),
                       weft_arm(f->op, op, seed_for_child(&f->random), f->kind));
        } else if (f->what < 2 * OPS) {
            weft_await(f->until, weft_until, a_token(&f->random),
                       weft_arm(f->deadline, weft_deadline,
                                weft_later(weft_now(), span_for(&f->random, f->kind)),
                                weft_arm(f->op, op, seed_for_child(&f->random), f->kind)));
        } else if (f->what < IN_TIME) {
            weft_await(f->timeout, weft_timeout, span(&f->random),
                       weft_arm(f->shield, weft_shield, span_for(&f->random, f->kind),
                                weft_arm(f->op, op, seed_for_child(&f->random), f->kind)));
        } else if (f->depth >= DEPTH) {
            continue;
        } else if (f->what < IN_SCOPE) {
            f->errand = an_errand(&f->random, f->depth + 1);
            weft_await(f->timeout, weft_timeout, span(&f->random),
                       weft_arm(f->wait, weft_wait, f->errand));
            if (pool_random(&f->random, 2)) weft_cancel(f->errand);
            weft_await(f->timeout, weft_timeout, span(&f->random),
                       weft_arm(f->join, weft_join, f->errand, &f->error));
        } else {
            o = scope_shape(&f->random, &f->error);
            weft__scope_init(&f->scope, &o);
            weft_await(
                f->run, weft_scope_run, &f->scope,
                weft_arm(f->starts, starts, &f->scope, f->depth + 1, seed_for_child(&f->random)));
        }
    }
    weft_return(0);
    weft_end;
}

/* However it is left, behind it there are no children. */
static int opens_a_scope(uint64_t *random, int depth)
{
    int error = 0;
    weft_scope_opts o = scope_shape(random, &error);
    uint32_t count = 1 + pool_random(random, 3);

    WEFT_SCOPE(s, .error = o.error, .timeout = o.timeout, .limit = o.limit,
               .first_success = o.first_success)
    {
        while (count > 0 && starts_one(s, random, depth + 1) == 0)
            count--;
        if (pool_random(random, 2)) (void)weft_sleep(span(random));
        stops_some(s, random);
        if (pool_random(random, 8) == 0) return 0;
        if (pool_random(random, 8) == 0) break;
    }
    return 0;
}

static int has_a_set(uint64_t *random, int depth)
{
    int_set set = {.limit = pool_random(random, 3)};
    int got;

    for (uint32_t i = 0; i < 3; i++) {
        int r = weft_set_reserve(&set);
        if (r < 0) break;
        if (pool_random(random, 4) == 0) {
            weft_set_permit_drop(&set);
        } else if (pool_random(random, 2)) {
            (void)weft_set_permit_go(&set, node_on_a_fiber, depth + 1, seed_for_child(random));
        } else {
            (void)weft_set_permit_spawn(&set, node, .depth = depth + 1,
                                        .random = seed_for_child(random));
        }
    }
    if (pool_random(random, 2)) weft_set_cancel(&set);
    if (pool_random(random, 2)) (void)weft_set_join_next(&set, &got);
    (void)(pool_random(random, 2) ? weft_set_join(&set) : weft_set_stop(&set));
    weft_set_done(&set);
    return 0;
}

static int goes_on_an_errand(uint64_t *random, int depth)
{
    int r = 0;
    weft_task *t = an_errand(random, depth + 1);
    WEFT_TIMEOUT(span(random))(void) weft_wait(t);
    if (pool_random(random, 2)) weft_cancel(t);
    if (pool_random(random, 3) == 0) return weft_detach(t); /* -ECHILD: it never was */
    (void)weft_join(t, &r);
    return 0;
}

static int does_something(uint64_t *random, int depth, int what)
{
    if (what < OPS) return weft_run(op, .random = seed_for_child(random), .kind = what);
    switch (what - OPS) {
    case 0:
        return calls_a_job(random);
    case 1:
        return selects_in_a_loop(random);
    case 2:
        return looks_once();
    case 3:
        return locks_in_a_shield(random);
    case 4:
        return depth < DEPTH ? has_a_set(random, depth) : 0;
    case 5:
        return depth < DEPTH ? goes_on_an_errand(random, depth) : 0;
    default:
        return depth < DEPTH ? opens_a_scope(random, depth) : weft_yield();
    }
}

static int in_a_region(uint64_t *random, int depth)
{
    int what = (int)pool_random(random, OPS + 8);
    weft_time time = span_for(random, what);
    int r = 0;

    switch (pool_random(random, 5)) {
    case 0:
        WEFT_DEADLINE(weft_later(weft_now(), time)) r = does_something(random, depth, what);
        return r;
    case 1:
        WEFT_UNTIL(a_token(random))
        {
            WEFT_TIMEOUT(time) r = does_something(random, depth, what);
        }
        return r;
    case 2:
        WEFT_TIMEOUT(time)
        {
            WEFT_TIMEOUT(time) r = does_something(random, depth, what); /* at the same instant */
        }
        return r;
    case 3:
        WEFT_TIMEOUT(time)
        {
            WEFT_SHIELD(span_for(random, what)) r = does_something(random, depth, what);
        }
        return r;
    default:
        WEFT_TIMEOUT(time) r = does_something(random, depth, what);
        return r;
    }
}

static int node_on_a_fiber(int depth, uint64_t random)
{
    for (uint32_t left = 1 + pool_random(&random, 6); left > 0; left--) {
        fetch_add_relaxed(&of.steps, 1);
        (void)in_a_region(&random, depth);
    }
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------- */

enum { TOPS = 10 };

static int program(uint64_t random, uint64_t rounds)
{
    weft_time begun = weft_now();
    while (rounds-- > 0 && weft_yield() == 0) {
        WEFT_SCOPE(s)
        {
            for (int i = 0; i < TOPS; i++)
                if (starts_one(s, &random, 0) < 0) break;
            if (pool_random(&random, 3) == 0) {
                (void)weft_sleep(span(&random));
                (void)weft_scope_cancel(s);
            }
        }
    }
    ASSERT(weft_now() - begun < LONG); /* nobody waited in vain */
    store_relaxed(&of.over, true);
    return 0;
}

static void begin(struct crew *crew, int workers)
{
    weft_rt_opts opts = {.workers = workers,
                         .seed = test_seed() | 1,
                         .paused = true,
                         .budget = 1 + (uint32_t)(test_seed() % 7) * 8,
                         .spin_us = 1};
    world_begins();
    crew_start_with(crew, &opts);
}

static bool all_have_ended(const weft_rt *rt)
{
    weft_stats stats;
    weft_rt_stats(rt, &stats);
    return stats.spawned == stats.completed;
}

/* To its end; what was detached ends soon behind it. */
TEST_WITH(whole_program_to_its_end, .timeout_s = 300)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        int r = -1;
        begin(&crew, crew_sizes[i]);
        ASSERT_OK(weft_join(weft_go(program, pool_seed(i), test_scaled(60)), &r));
        ASSERT_OK(r);
        CREW_UNTIL(all_have_ended(crew.rt));
        crew_stop(&crew);
        world_is_accounted_for();
    }
}

/* Stopped in the midst of it, with tasks in every state. */
TEST_WITH(whole_program_is_stopped, .timeout_s = 300)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        uint64_t random = pool_seed(100 + i);
        uint64_t steps = pool_random(&random, 4000);
        begin(&crew, crew_sizes[i]);
        ASSERT_OK(weft_detach(weft_go(program, pool_seed(i), test_scaled(200))));
        CREW_UNTIL(load_relaxed(&of.steps) >= steps || load_relaxed(&of.over));
        crew_stop(&crew);
        world_is_accounted_for();
    }
}
