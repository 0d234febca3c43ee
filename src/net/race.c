/* SPDX-License-Identifier: MIT
 *
 * race - attempts side by side, and the delay between them; the drawing is in race.h.
 */
#include "net/race.h"

#include "base/alloc.h"
#include "net/addr.h"
#include "sync/leaf.h"
#include "task/call.h"

#include <weft/time.h>

#include <string.h>

/* RFC 8305's Connection Attempt Delay. Doubled: a host whose first address is dead is reached half a second late; halved: twice the attempts where answers
 * take long. */
#define ATTEMPT_DELAY_NS INT64_C(250000000)

struct attempt {
    struct weft_tcp_connect connect;
    weft_stream *stream; /* once it is connected */
    bool runs;
};

struct weft__race {
    enum { RESOLVES, RUNS, ENDS } stage;
    const weft_net_opts *opts;
    char *name;           /* host and service, apart; NULL: by addresses */
    weft_addr_list *list; /* of the name; NULL: borrowed, or not there yet */
    const weft_addr *addrs;
    size_t count;
    size_t next;    /* the first that has not begun, in `order` */
    size_t running; /* attempts */
    struct weft_resolve resolve;
    weft_resolve_opts resolve_opts;
    struct weft_sleep delay;
    bool delays;
    int ret; /* RUNS: of the first address, if it has failed; ENDS: the answer */
    weft_stream *won;
    struct attempt *attempt; /* `count` of them */
    size_t *order;           /* as many: indexes of addrs */
};

/* ---- beginning and end ---- */

bool weft__race_is_name(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || !colon[1]) return false;
    return !memchr(address, ':', (size_t)(colon - address)) && address[0] != '[' &&
           address[0] != '*';
}

static void race_free(struct weft__race *race)
{
    weft_free(race->list);
    weft__free(race->attempt);
    weft__free(race->order);
    weft__free(race->name);
    weft__free(race);
}

static int split_name(struct weft__race *race, const char *name)
{
    size_t bytes = strlen(name) + 1;
    race->name = weft__alloc(bytes);
    if (!race->name) return -ENOMEM;
    memcpy(race->name, name, bytes);
    char *colon = strrchr(race->name, ':');
    *colon = '\0';
    race->resolve_opts.rt = race->opts ? race->opts->rt : NULL;
    race->resolve = (struct weft_resolve){
        .host = race->name, .service = colon + 1, .opts = &race->resolve_opts, .into = &race->list};
    return 0;
}

static bool is_six(const weft_addr *addr)
{
    return addr->bytes > 16; /* a sockaddr_in has 16 bytes */
}

/* The first one's family, then the other, in turns; what is left of one behind. */
static void take_turns(struct weft__race *race)
{
    size_t at[2] = {0, 0}; /* where to look for the next of each family */
    bool six = is_six(&race->addrs[0]);
    for (size_t n = 0; n < race->count; six = !six) {
        size_t *i = &at[six];
        while (*i < race->count && is_six(&race->addrs[*i]) != six)
            ++*i;
        if (*i < race->count) race->order[n++] = (*i)++;
    }
}

static int lines_up(struct weft__race *race, const weft_addr *addrs, size_t count)
{
    race->addrs = addrs;
    race->count = count;
    race->attempt = weft__alloc(count * sizeof(struct attempt));
    race->order = weft__alloc(count * sizeof(size_t));
    if (!race->attempt || !race->order) return -ENOMEM;
    take_turns(race);
    race->stage = RUNS;
    return 0;
}

int weft__race_new(const char *name, const weft_addr *addrs, size_t count,
                   const weft_net_opts *opts, struct weft__race **into)
{
    struct weft__race *race = weft__alloc(sizeof(*race));
    if (!race) return -ENOMEM;
    race->opts = opts;
    int r = name ? split_name(race, name) : lines_up(race, addrs, count);
    if (r < 0) {
        race_free(race);
        return r;
    }
    *into = race;
    return 0;
}

/* ---- the names ---- */

static void decides(struct weft__race *race, int ret)
{
    race->ret = ret;
    race->stage = ENDS;
}

/* PENDING: not there yet. */
static weft_poll resolves(struct weft__race *race, weft_cx *cx)
{
    if (weft_resolve_poll(&race->resolve, cx) == WEFT_PENDING) return WEFT_PENDING;
    int r = race->resolve.ret;
    if (r == 0) r = lines_up(race, race->list->addr, race->list->count);
    if (r < 0) decides(race, r);
    return WEFT_READY;
}

/* ---- attempts ---- */

static void begin_next(struct weft__race *race)
{
    struct attempt *a = &race->attempt[race->next];
    a->connect = (struct weft_tcp_connect){
        .into = &a->stream, .opts = race->opts, .weft__to = &race->addrs[race->order[race->next]]};
    a->runs = true;
    race->next++;
    race->running++;
    if (race->delays) {
        weft_sleep_reset(&race->delay, weft_later(weft_now(), ATTEMPT_DELAY_NS));
    } else {
        race->delay = (struct weft_sleep){.ns = ATTEMPT_DELAY_NS};
    }
    race->delays = race->next < race->count || race->delays;
}

/* One attempt, polled. True: it has failed. */
static bool fails(struct weft__race *race, size_t i, weft_cx *cx)
{
    struct attempt *a = &race->attempt[i];
    if (weft_tcp_connect_poll(&a->connect, cx) == WEFT_PENDING) return false;
    a->runs = false;
    race->running--;
    if (a->connect.ret == 0) {
        race->won = a->stream;
        decides(race, 0);
        return false;
    }
    if (i == 0) race->ret = a->connect.ret;
    return true;
}

/* True: one has failed, and the next may begin at once. */
static bool polls_all(struct weft__race *race, weft_cx *cx)
{
    bool failed = false;
    for (size_t i = 0; i < race->next && race->stage == RUNS; i++)
        if (race->attempt[i].runs && fails(race, i, cx)) failed = true;
    return failed;
}

/* Without memory for a timer it is over at once. */
static bool delay_is_over(struct weft__race *race, weft_cx *cx)
{
    if (!race->delays || weft_sleep_poll(&race->delay, cx) == WEFT_PENDING) return false;
    race->delays = false;
    return true;
}

/* PENDING: all who have begun run, or it is not time for the next. */
static weft_poll runs(struct weft__race *race, weft_cx *cx)
{
    if (race->next == 0) begin_next(race);
    for (;;) {
        bool failed = polls_all(race, cx);
        if (race->stage == ENDS) return WEFT_READY;
        bool more = race->next < race->count;
        if (!more && race->running == 0) {
            decides(race, race->ret);
            return WEFT_READY;
        }
        bool may = failed || race->running == 0 || delay_is_over(race, cx);
        if (!more || !may) return WEFT_PENDING;
        begin_next(race);
    }
}

/* ---- the end ---- */

/* PENDING: one has not settled yet. */
static weft_poll stops(struct weft__race *race, weft_cx *cx)
{
    weft_poll answer = WEFT_READY;
    for (size_t i = 0; i < race->next; i++) {
        struct attempt *a = &race->attempt[i];
        if (!a->runs) continue;
        if (weft__poll_stop(weft_tcp_connect_poll, &a->connect, cx) == WEFT_PENDING) {
            answer = WEFT_PENDING;
        } else {
            a->runs = false;
            if (a->connect.ret == 0) weft__stream_close(a->stream, NULL);
        }
    }
    if (race->delays && race->delay.weft__at) {
        if (weft__poll_stop(weft_sleep_poll, &race->delay, cx) == WEFT_PENDING) return WEFT_PENDING;
    }
    race->delays = false;
    return answer;
}

weft_poll weft__race_poll(struct weft__race *race, weft_cx *cx, weft_stream **stream, int *ret)
{
    if (race->stage == RESOLVES && resolves(race, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (race->stage == RUNS && cx->why) {
        if (race->next == 0 && weft__told_yields(cx)) return WEFT_PENDING;
        decides(race, weft_cx_cancelled(cx));
    }
    if (race->stage == RUNS && runs(race, cx) == WEFT_PENDING) return WEFT_PENDING;
    if (stops(race, cx) == WEFT_PENDING) return WEFT_PENDING;
    *ret = race->ret;
    if (race->ret == 0) *stream = race->won;
    race_free(race);
    return WEFT_READY;
}

/* ---- of addresses ---- */

static weft_poll any_ends(struct weft_tcp_connect_any *f, int ret)
{
    f->weft__race = NULL;
    f->weft__at = 0;
    f->ret = ret;
    return WEFT_READY;
}

static int any_begins(struct weft_tcp_connect_any *f)
{
    struct weft__race *race;
    if (!f->addrs || f->count == 0 || !f->into) return -EINVAL;
    for (size_t i = 0; i < f->count; i++)
        if (weft_addr_port(&f->addrs[i]) < 0) return -EINVAL;
    int r = weft__race_new(NULL, f->addrs, f->count, f->opts, &race);
    if (r < 0) return r;
    f->weft__race = race;
    f->weft__at = WEFT__LEAF_WAITS;
    return 0;
}

weft_poll weft_tcp_connect_any_poll(void *frame, weft_cx *cx)
{
    struct weft_tcp_connect_any *f = frame;
    int ret;
    if (!f->weft__race) {
        if (cx->why)
            return weft__told_yields(cx) ? WEFT_PENDING : any_ends(f, weft_cx_cancelled(cx));
        int r = any_begins(f);
        if (r < 0) return any_ends(f, r);
    }
    weft_poll answer = weft__race_poll(f->weft__race, cx, f->into, &ret);
    return answer == WEFT_PENDING ? WEFT_PENDING : any_ends(f, ret);
}

int weft__tcp_connect_any(const weft_addr *addrs, size_t count, weft_stream **into)
{
    struct weft_tcp_connect_any f = {.addrs = addrs, .count = count, .into = into};
    int r = weft__run_from(weft_tcp_connect_any_poll, &f, __builtin_return_address(0));
    return r < 0 ? r : f.ret;
}
