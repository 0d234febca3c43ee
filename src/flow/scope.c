/* SPDX-License-Identifier: MIT
 *
 * scope - children that end before their block does: spawn, stop, and the end that waits.
 *
 * What a scope knows of its children, and who races with whom, is in sync/kin.h. Here are the faces of it.
 *
 * THE BLOCK is two regions (task/region.h). The outer one is the scope's deadline, if it has one. The inner one
 * asks once the scope was stopped, so that the body's waits answer why; and it is told what lies further out
 * asks for, the deadline included, and stops the scope with that. So a cancel reaches the children at the body's
 * next wait, also when the body itself does not hear it behind a shield.
 * AT THE END both are left, and the join listens itself: to what its caller is told, and to the deadline, for
 * which it has a sleep of its own. It never answers before there are no children.
 *
 *     entered -> ended    [end]      the statement came to its end, or `continue`: join
 *     entered -> ended    [leave]    any other way out: stop, then join
 *
 * Threads: a block belongs to its fiber or thread, all else to anybody. Rejected: a timer that stops the scope by
 * itself (it would need memory that outlives the scope, for a wake that is on its way; the owner is woken anyway);
 * a task as the scope's keeper (a task for each scope).
 */
#include "flow/scope.h"
#include "sync/leaf.h"
#include "task/call.h"
#include "task/here.h"
#include "task/region.h"

#include <errno.h>
#include <string.h>

static struct weft__kin *kin_of(const weft_scope *scope)
{
    return weft__scope_kin(scope);
}

/* ---- making ---------------------------------------------------------------------------------------- */

/* 0: none. What is below zero was computed, and is past: to take it for none would be to wait for ever. */
static weft_time deadline_of(const weft_scope_opts *opts)
{
    weft_time at = opts->deadline ? opts->deadline : WEFT_FOREVER;
    weft_time after = opts->timeout ? weft_later(weft_now(), opts->timeout) : WEFT_FOREVER;
    weft_time first = after < at ? after : at;

    if (first == WEFT_FOREVER) return 0;
    return first ? first : 1;
}

static uint8_t policy_of(const weft_scope_opts *opts)
{
    if (opts->first_success) return WEFT__KIN_FIRST;
    return opts->error ? WEFT__KIN_TOGETHER : WEFT__KIN_ALONE;
}

void weft__scope_init(weft_scope *scope, const weft_scope_opts *opts)
{
    struct weft__kin *kin = kin_of(scope);

    memset(scope, 0, sizeof(*scope));
    weft__waitlist_init(&kin->list);
    kin->policy = policy_of(opts);
    kin->limit = opts->limit;
    kin->lent.file = opts->weft__file;
    kin->lent.line = opts->weft__line;
    kin->deadline = deadline_of(opts);
    kin->into = opts->error;
}

/* ---- children -------------------------------------------------------------------------------------- */

/* 0; -EAGAIN, -EDEADLK, or what the wait for room answers. */
static int reserve(weft_scope *scope, bool waits, const void *caller)
{
    struct weft__kin *kin = kin_of(scope);

    while (!weft__kin_reserve(kin)) {
        struct weft_scope_room room = {.scope = scope};
        const struct weft_task *self = weft__here()->task;
        if (!waits || weft__run_is_refused()) return -EAGAIN;
        if (kin->limit == 1 && self && weft__kin_of(self) == kin) return -EDEADLK;
        (void)weft__run_from(weft_scope_room_poll, &room, caller);
        if (room.ret < 0) return room.ret;
    }
    return 0;
}

static int child_new(weft_scope *scope, const struct weft_site *site, const weft_spawn_opts *opts,
                     weft_task **into)
{
    struct weft__kin *kin = kin_of(scope);
    struct weft_task *task = weft__task_new_in(kin, site, opts);

    if (!task) {
        weft__kin_unreserve(kin);
        return weft__task_why_not(opts);
    }
    *into = task;
    return 0;
}

int weft__scope_new(weft_scope *scope, const struct weft_site *site, const weft_spawn_opts *opts,
                    bool waits, weft_task **into)
{
    if (!scope) return -EINVAL;
    if (weft__kin_is_lost(kin_of(scope))) return -ECHILD;
    int r = kin_of(scope)->limit > 0 ? reserve(scope, waits, __builtin_return_address(0)) : 0;
    return r < 0 ? r : child_new(scope, site, opts, into);
}

void weft__scope_start(weft_task *task)
{
    weft__task_start_in(task);
}

int weft__go_in(weft_scope *scope, const struct weft_site *site, const weft_call *call,
                const weft_spawn_opts *opts, bool waits)
{
    weft_task *task = NULL;
    int r = weft__scope_new(scope, site, opts, waits, &task);
    if (r < 0) return r;

    struct weft__go_frame *frame = weft__task_frame(task);
    *frame = (struct weft__go_frame){.call = *call};
    weft__task_start_in(task);
    return 0;
}

/* ---- room ------------------------------------------------------------------------------------------ */

static weft_poll room_ends(struct weft_scope_room *f, int ret)
{
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll room_gives_up(struct weft_scope_room *f, weft_cx *cx)
{
    if (!f->weft__at && weft__told_yields(cx)) return WEFT_PENDING;
    if (f->weft__at) weft__kin_room_settle(kin_of(f->scope), WEFT__LEAF_WAITER(f));
    return room_ends(f, weft_cx_cancelled(cx));
}

weft_poll weft_scope_room_poll(void *frame, weft_cx *cx)
{
    struct weft_scope_room *f = frame;

    if (!f->scope) return room_ends(f, -EINVAL);
    if (weft__kin_is_lost(kin_of(f->scope))) return room_ends(f, -ECHILD);
    if (cx->why) return room_gives_up(f, cx);
    if (!f->weft__at) {
        if (!weft__leaf_may(cx)) return WEFT_PENDING;
        weft__waiter_init(WEFT__LEAF_WAITER(f));
    }
    if (weft__kin_room_poll(kin_of(f->scope), WEFT__LEAF_WAITER(f), cx->waker))
        return room_ends(f, 0);
    f->weft__at = WEFT__LEAF_WAITS;
    return WEFT_PENDING;
}

int weft__scope_room(weft_scope *scope)
{
    struct weft_scope_room f = {.scope = scope};
    int r = weft__run_from(weft_scope_room_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- stop and look --------------------------------------------------------------------------------- */

bool weft_scope_cancel(weft_scope *scope)
{
    if (!scope || weft__kin_is_lost(kin_of(scope))) return false;
    return weft__kin_stop(kin_of(scope), -ECANCELED, -ECANCELED);
}

bool weft_scope_fail(weft_scope *scope, int error)
{
    if (!scope || error >= 0 || weft__kin_is_lost(kin_of(scope))) return false;
    return weft__kin_stop(kin_of(scope), -ECANCELED, error);
}

int weft_scope_reason(const weft_scope *scope)
{
    return scope ? weft__kin_reason(kin_of(scope)) : 0;
}

size_t weft_scope_count(const weft_scope *scope)
{
    return scope ? load_relaxed(&kin_of(scope)->count) : 0; /* relaxed: a number */
}

/* ---- the end --------------------------------------------------------------------------------------- */

enum { JOIN_BEGUN = 1, JOIN_TIMED = 2, JOIN_WAITS = 4 }; /* of weft__at, which stays odd */

/* The scope's deadline, by a sleep of the join's own. `why`: 0 to look, else to let go of it. */
static bool late_poll(struct weft_scope_join *f, weft_cx *cx, int why)
{
    int outer = cx->why;
    cx->why = why;
    weft_poll answer = weft_sleep_until_poll(&f->weft__late, cx);
    cx->why = outer;
    if (answer == WEFT_READY) f->weft__at &= ~JOIN_TIMED;
    return answer == WEFT_READY;
}

void weft__scope_listens(struct weft_scope_join *f, weft_cx *cx)
{
    struct weft__kin *kin = kin_of(f->scope);

    if (cx->why) (void)weft__kin_stop(kin, cx->why, cx->why);
    if (!kin->deadline || weft__kin_reason(kin)) return;
    if (!(f->weft__at & JOIN_TIMED)) {
        f->weft__late = (struct weft_sleep_until){.at = kin->deadline};
        f->weft__at |= JOIN_TIMED;
    }
    if (late_poll(f, cx, 0)) (void)weft__kin_stop(kin, -ETIME, -ETIME);
}

static weft_poll join_ends(struct weft_scope_join *f, weft_cx *cx, int ret)
{
    if (f->weft__at & JOIN_TIMED) (void)late_poll(f, cx, -ECANCELED);
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

int weft__scope_join_begins(struct weft_scope_join *f, const weft_cx *cx)
{
    const struct weft_task *self = weft__waker_task(cx->waker);

    f->weft__at = JOIN_BEGUN;
    weft__waiter_init(WEFT__LEAF_WAITER(f));
    return self && weft__kin_of(self) == kin_of(f->scope) ? -EDEADLK : 0;
}

static weft_poll join_waits(struct weft_scope_join *f)
{
    if (!(f->weft__at & JOIN_WAITS)) weft__join_dives();
    f->weft__at |= JOIN_WAITS;
    return WEFT_PENDING;
}

weft_poll weft_scope_join_poll(void *frame, weft_cx *cx)
{
    struct weft_scope_join *f = frame;
    int error;

    if (!f->scope) return join_ends(f, cx, -EINVAL);
    struct weft__kin *kin = kin_of(f->scope);
    if (weft__kin_is_lost(kin)) return join_ends(f, cx, -ECHILD);
    if (!f->weft__at && !weft__leaf_may(cx)) return WEFT_PENDING;
    if (!f->weft__at && weft__scope_join_begins(f, cx) < 0) return join_ends(f, cx, -EDEADLK);
    weft__scope_listens(f, cx);
    switch (weft__kin_end_poll(kin, WEFT__LEAF_WAITER(f), cx->waker, &error)) {
    case WEFT__KIN_WAITS:
        return join_waits(f);
    case WEFT__KIN_BUSY:
        return join_ends(f, cx, -EBUSY);
    default:
        break;
    }
    if (kin->into) *kin->into = error;
    return join_ends(f, cx, 0);
}

static int join_from(weft_scope *scope, const void *caller)
{
    struct weft_scope_join f = {.scope = scope};
    int r = weft__run_from(weft_scope_join_poll, &f, caller);
    return r < 0 ? r : f.ret;
}

int weft__scope_join(weft_scope *scope)
{
    return join_from(scope, __builtin_return_address(0));
}

/* ---- the block ------------------------------------------------------------------------------------- */

/* In weft__scope_block, behind the scope itself and the region of its deadline. */
struct block {
    struct weft__region region;
    struct weft__waiter waiter; /* among the scope's bodies, while the region is begun */
    bool waits;
    bool ended;
};
_Static_assert(sizeof(struct block) <= sizeof(((struct weft__scope_block *)0)->weft__),
               "a block fits its place");

static struct block *block_of(struct weft__scope_block *face)
{
    return (struct block *)(void *)face->weft__;
}

static struct weft__scope_block *face_of(void *block)
{
    return weft__container_of(block, struct weft__scope_block, weft__);
}

/* The region's leaf: over once the scope was stopped. */
static weft_poll stopped_poll(void *frame, weft_cx *cx)
{
    struct block *b = frame;
    struct weft__kin *kin = kin_of(&face_of(b)->scope);

    if (weft__kin_is_lost(kin)) return cx->why ? WEFT_READY : WEFT_PENDING;
    if (!b->waits && !cx->why && !cx->probe)
        b->waits = weft__kin_body_begin(kin, &b->waiter, cx->waker);
    int why = weft__kin_reason(kin);
    if (!why && !cx->why) return WEFT_PENDING;
    if (b->waits) weft__kin_body_settle(kin, &b->waiter);
    b->waits = false;
    if (why) b->region.why = why;
    return WEFT_READY;
}

static void block_told(struct weft__region *region, int why)
{
    struct block *b = weft__container_of(region, struct block, region);
    struct weft__kin *kin = kin_of(&face_of(b)->scope);

    if (!weft__kin_is_lost(kin)) (void)weft__kin_stop(kin, why, why);
}

/* A helper of a stackless body: it could not wait at its end. */
static struct weft__scope_block *refuse(struct block *b, const weft_scope_opts *opts,
                                        const void *caller)
{
    struct weft_yield never = {0};

    b->ended = true;
    if (opts->error) *opts->error = -EDEADLK;
    (void)weft__run_from(weft_yield_poll, &never, caller); /* says so */
    return NULL;
}

struct weft__scope_block *weft__scope_enter(struct weft__scope_block *face,
                                            const weft_scope_opts *opts)
{
    struct block *b = block_of(face);

    if (weft__run_is_refused()) return refuse(b, opts, __builtin_return_address(0));
    weft__scope_init(&face->scope, opts);
    if (kin_of(&face->scope)->deadline)
        weft__deadline_enter(&face->weft__time, kin_of(&face->scope)->deadline);
    weft__region_init(&b->region, stopped_poll, b, -ECANCELED, false);
    weft__waiter_init(&b->waiter);
    b->region.told = block_told;
    b->waits = false;
    b->ended = false;
    weft__region_enter(&b->region);
    return face;
}

static void block_ends(struct weft__scope_block *face, const void *caller)
{
    struct block *b = block_of(face);

    b->ended = true;
    weft__region_leave(&b->region);
    if (kin_of(&face->scope)->deadline) weft__region_block_leave(&face->weft__time);
    (void)join_from(&face->scope, caller);
}

weft_scope *weft__scope_end(struct weft__scope_block *face)
{
    block_ends(face, __builtin_return_address(0));
    return NULL;
}

void weft__scope_leave(struct weft__scope_block *face)
{
    if (block_of(face)->ended) return;
    (void)weft_scope_cancel(&face->scope);
    block_ends(face, __builtin_return_address(0));
}
