/* SPDX-License-Identifier: MIT
 *
 * token - a tree of requests to stop, under one lock.
 *
 * A token without a parent is the root of a tree, and its waitlist's lock guards the whole of it: who is
 * whose child, who waits for whom, the hooks. Each token has a list of its own for those who wait for it;
 * the root's waitlist holds none of them, until they are to be woken: a cancel marks the subtree, and moves
 * the waiters of all its tokens to the root's list, two links each, from where they get their turns.
 *     reason != 0  =>  reason != 0 of all that lie beneath; none of them has waiters; no hook is ON
 * HOOKS run before, with no lock held, one at a time. A hook that runs belongs to the canceller; whoever wants
 * its memory back waits in a list in the hook.
 *     OFF -> ON        [hook_on]                     ON      -> OFF    [hook_off]    it never runs
 *     ON  -> RUNS      [cancel, under the lock]      RUNS    -> RAN    [cancel]      wakes who waits in it
 *     RAN -> OFF       [hook_off]
 * THE LAST TOUCH of a cancel is the drop of the lock, if there are no hooks and no more waiters than a batch: the
 * woken side may then end the token (waitlist.h), since weft_token_done takes the lock, too. Who was queued takes it
 * before it settles; one that finds the token cancelled at a look has nothing that the canceller could touch.
 *
 * Threads: any. LOCK ORDER: the root's waitlist alone; user code runs with none held.
 * Pairs: [token] cancel -> reason: what was written before the cancel.
 * Rejected: a lock for each token (a cancel then needs two at a time, or lets a child be born between two looks; and
 * who keeps a child alive while it is woken?); all waiters of a tree in one list (to cancel one of a million
 * connections would look at all); references (the tokens' memory is the program's, as its locks').
 */
#include "base/assert.h"
#include "base/list.h"
#include "flow/around.h"
#include "sync/leaf.h"
#include "sync/waitlist.h"
#include "task/call.h"
#include "task/here.h"

#include <weft/token.h>

#include <errno.h>
#include <string.h>

/* Zero is one that was not used so far. */
struct token {
    struct weft__waitlist list; /* of a root: the lock, and who is being woken */
    struct weft__link
        waiters; /* who waits for this one                          [root's lock, as all down to root] */
    struct weft__link hooks;    /* ON */
    struct weft__link children; /* by their `sibling` */
    struct weft__link sibling;
    struct token *parent;  /* NULL: it is a root */
    struct token *root;    /* NULL: itself                                         [constant] */
    _Atomic int reason;    /* 0, or why it was cancelled; written once, under the lock  [token] */
    uint32_t hooks_at_run; /* of a root: hooks of the tree that run just now       [root's lock] */
};
_Static_assert(sizeof(struct token) <= sizeof(weft_token), "a token fits its place");

enum hook_state { HOOK_OFF, HOOK_ON, HOOK_RUNS, HOOK_RAN };

struct hook {
    struct weft__link
        link; /* in the token's hooks while ON; then in a canceller's own list  [root's lock, as all] */
    struct weft__link waiters; /* who wants it off */
    struct token *root;
    const struct weft__here *runner; /* whose thread runs it */
    enum hook_state state;
};
_Static_assert(sizeof(struct hook) <= sizeof(((weft_token_hook *)0)->weft__),
               "a hook fits its place");

static struct token *token_of(const weft_token *token)
{
    return (struct token *)(uintptr_t)token;
}

static struct hook *hook_of(weft_token_hook *hook)
{
    return (struct hook *)(void *)hook->weft__;
}

static weft_token_hook *face_of(struct hook *h)
{
    return weft__container_of(h, weft_token_hook, weft__);
}

static struct token *root_of(struct token *t)
{
    return t->root ? t->root : t;
}

static int reason_look(const struct token *t)
{
    return load_acquire(&t->reason); /* [token] with mark: what was written before the cancel */
}

/* ---- the tree ------------------------------------------------------------------------------------ */

/* Holds: the root's lock. A token that was zero has lists from now on. */
static void token_ready(struct token *t)
{
    if (t->waiters.next) return;
    weft__link_init(&t->waiters);
    weft__link_init(&t->hooks);
    weft__link_init(&t->children);
    weft__link_init(&t->sibling);
}

/* Takes the lock of the tree. A root that was zero has a list from now on. */
static struct token *tree_lock(struct token *t)
{
    struct token *root = root_of(t);
    weft__waitlist_lock(&root->list);
    if (!root->list.head.next) weft__link_init(&root->list.head);
    token_ready(root);
    return root;
}

static void tree_unlock(struct token *root)
{
    weft__waitlist_unlock(&root->list);
}

void weft_token_init(weft_token *token, weft_token *parent)
{
    struct token *t = token_of(token);

    memset(token, 0, sizeof(*token));
    weft__waitlist_init(&t->list);
    token_ready(t);
    if (!parent) return;
    struct token *p = token_of(parent);
    struct token *root = tree_lock(p);
    t->parent = p;
    t->root = root;
    weft__list_push_back(&p->children, &t->sibling);
    store_relaxed(&t->reason, load_relaxed(&p->reason)); /* relaxed, both: under the lock */
    tree_unlock(root);
}

/* Holds: the lock. */
static void children_move(struct token *from, struct token *to)
{
    weft__list_each (it, &from->children)
        weft__container_of(it, struct token, sibling)->parent = to;
    weft__list_splice_back(&to->children, &from->children);
}

void weft_token_done(weft_token *token)
{
    if (!token) return;
    struct token *t = token_of(token);
    struct token *root = tree_lock(t);

    weft_assert(weft__list_empty(&t->waiters)); /* somebody waits for a token that is gone */
    weft_assert(weft__list_empty(&t->hooks));   /* a hook is still on */
    if (t->parent) {
        children_move(t, t->parent);
        weft__list_remove(&t->sibling);
        tree_unlock(root);
        return;
    }
    weft_assert(weft__list_empty(&t->children)); /* a child outlives its parent */
    weft_assert(t->hooks_at_run == 0);           /* a cancel will be back */
    tree_unlock(root);
    weft__waitlist_done(&t->list);
}

/* Holds: the lock. The next token of the subtree of `top`, parents first; NULL: that was the last. */
static struct token *next_beneath(struct token *t, const struct token *top)
{
    struct weft__link *down = weft__list_first(&t->children);
    if (down) return weft__container_of(down, struct token, sibling);
    for (; t != top; t = t->parent) {
        struct weft__link *beside = t->sibling.next;
        if (beside != &t->parent->children)
            return weft__container_of(beside, struct token, sibling);
    }
    return NULL;
}

/* ---- cancel --------------------------------------------------------------------------------------- */

/* Holds: the lock. Who waits is to be woken, what hangs on it to be run; all of a cancelled child has been before. */
static void mark(struct token *t, int reason, struct token *root, struct weft__link *hooks)
{
    if (load_relaxed(&t->reason)) return; /* relaxed: under the lock */
    store_release(&t->reason, reason);    /* [token] with reason_look */
    weft__list_splice_back(&root->list.head, &t->waiters);
    weft__list_splice_back(hooks, &t->hooks);
}

/* Holds: the lock, but for the function itself. */
static void hook_run(struct token *root, struct hook *h)
{
    weft_token_hook *face = face_of(h);

    h->state = HOOK_RUNS;
    h->runner = weft__here();
    tree_unlock(root);
    face->fn(face->arg);
    (void)tree_lock(root);
    h->state = HOOK_RAN;
    weft__list_splice_back(&root->list.head, &h->waiters); /* with those of the token */
}

static void hooks_run(struct token *root, struct weft__link *hooks)
{
    root->hooks_at_run++;
    for (struct weft__link *it; (it = weft__list_pop_front(hooks));)
        hook_run(root, weft__container_of(it, struct hook, link));
    root->hooks_at_run--;
}

bool weft_token_cancel_for(weft_token *token, int reason)
{
    if (!token || reason >= 0) return false;
    struct token *top = token_of(token);
    struct token *root = tree_lock(top);
    struct weft__link hooks = WEFT__LIST_INIT(hooks);

    if (load_relaxed(&top->reason)) { /* relaxed: under the lock */
        tree_unlock(root);
        return false;
    }
    for (struct token *t = top; t; t = next_beneath(t, top))
        mark(t, reason, root, &hooks);
    if (!weft__list_empty(&hooks)) hooks_run(root, &hooks);
    (void)weft__waitlist_unlock_wake_all(&root->list, &weft__sched);
    return true;
}

bool weft_token_cancel(weft_token *token)
{
    return weft_token_cancel_for(token, -ECANCELED);
}

int weft_token_reason(const weft_token *token)
{
    return token ? reason_look(token_of(token)) : 0;
}

/* ---- wait ----------------------------------------------------------------------------------------- */

enum { WAIT_QUEUED = 1 };

static struct weft__waiter *waiter_of(struct weft_token_wait *f)
{
    _Static_assert(sizeof(f->weft__waiter) == sizeof(struct weft__waiter),
                   "a waiter fits its place");
    return (void *)f->weft__waiter;
}

/* One that was queued takes the lock once: behind it the canceller is through with the frame. Over, it can begin anew. */
static weft_poll wait_ends(struct weft_token_wait *f, int ret)
{
    struct token *root = tree_lock(token_of(f->token));
    (void)weft__waitlist_settle(&root->list, waiter_of(f)); /* its turn is nobody else's */
    tree_unlock(root);
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

static weft_poll wait_answers(struct weft_token_wait *f, int ret)
{
    f->ret = ret;
    return WEFT_READY;
}

/* False: it was cancelled meanwhile. */
static bool wait_begins(struct weft_token_wait *f, weft_cx *cx)
{
    struct token *t = token_of(f->token);
    struct token *root = tree_lock(t);
    bool waits = load_relaxed(&t->reason) == 0; /* relaxed: under the lock */

    weft__waiter_init(waiter_of(f));
    if (waits) weft__waitlist_add_before(&root->list, &t->waiters, waiter_of(f), cx->waker);
    tree_unlock(root);
    if (waits) f->weft__at = WAIT_QUEUED;
    return waits;
}

weft_poll weft__token_leaf_poll(void *frame, weft_cx *cx)
{
    struct weft_token_wait *f = frame;
    if (!f->token) return wait_answers(f, -EINVAL);
    int why = weft_cx_cancelled(cx);
    bool over = reason_look(token_of(f->token)) != 0;
    if (f->weft__at) {
        if (!over && !why) return WEFT_PENDING;
        return wait_ends(f, over ? 0 : why);
    }
    if (why || over) return wait_answers(f, why);
    if (cx->probe || wait_begins(f, cx)) return WEFT_PENDING;
    return wait_answers(f, 0);
}

weft_poll weft_token_wait_poll(void *frame, weft_cx *cx)
{
    const struct weft_token_wait *f = frame;
    if (!f->weft__at && (cx->why ? weft__told_yields(cx) : !weft__leaf_may(cx)))
        return WEFT_PENDING;
    return weft__token_leaf_poll(frame, cx);
}

int weft__token_wait(weft_token *token)
{
    struct weft_token_wait f = {.token = token};
    int r = weft__run_from(weft_token_wait_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}

/* ---- hooks ---------------------------------------------------------------------------------------- */

bool weft_token_hook_on(weft_token *token, weft_token_hook *hook)
{
    struct token *t = token_of(token);
    struct hook *h = hook_of(hook);
    struct token *root = tree_lock(t);
    struct weft__link hooks = WEFT__LIST_INIT(hooks);
    bool late = load_relaxed(&t->reason) != 0; /* relaxed: under the lock */

    h->root = root;
    h->runner = NULL;
    h->state = HOOK_ON;
    weft__link_init(&h->link);
    weft__link_init(&h->waiters);
    weft__list_push_back(late ? &hooks : &t->hooks, &h->link);
    if (late) hooks_run(root, &hooks);
    (void)weft__waitlist_unlock_wake_all(&root->list,
                                         &weft__sched); /* who wanted it off meanwhile */
    return late;
}

static struct weft__waiter *off_waiter_of(struct weft_token_hook_off *f)
{
    _Static_assert(sizeof(f->weft__waiter) == sizeof(struct weft__waiter),
                   "a waiter fits its place");
    return (void *)f->weft__waiter;
}

/* Holds: the lock. 0, 1, -EDEADLK; -EAGAIN: it runs, wait for that. */
static int hook_take_off(struct hook *h)
{
    switch (h->state) {
    case HOOK_ON:
        weft__list_remove(&h->link); /* from the token's list, or from a canceller's */
        h->state = HOOK_OFF;
        return 0;
    case HOOK_RUNS:
        return h->runner == weft__here() ? -EDEADLK : -EAGAIN;
    default:
        h->state = HOOK_OFF;
        return 1;
    }
}

/* A release: it does not look at why. */
weft_poll weft_token_hook_off_poll(void *frame, weft_cx *cx)
{
    struct weft_token_hook_off *f = frame;
    struct hook *h = hook_of(f->hook);
    f->ret = 1;
    if (!h->root) return WEFT_READY; /* it was never on */
    struct token *root = tree_lock(h->root);

    if (!f->weft__at) weft__waiter_init(off_waiter_of(f));
    f->ret = hook_take_off(h);
    bool waits = f->ret == -EAGAIN;
    if (waits && !f->weft__at)
        weft__waitlist_add_before(&root->list, &h->waiters, off_waiter_of(f), cx->waker);
    if (!waits && f->weft__at) (void)weft__waitlist_settle(&root->list, off_waiter_of(f));
    f->weft__at = waits;
    tree_unlock(root);
    return waits ? WEFT_PENDING : WEFT_READY;
}

int weft__token_hook_off(weft_token_hook *hook)
{
    struct weft_token_hook_off f = {.hook = hook};
    int r = weft__run_from(weft_token_hook_off_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
