/* SPDX-License-Identifier: MIT
 *
 * script - a stream that gives and expects what a test wrote down (weft/test.h).
 *
 *     at     the step; the steps before it are done
 *     moved  bytes of that step that were given, or came as expected
 * Reads and writes are tries under one lock (piece.h); each step that is done lets all who wait look again. A wait is slept by whoever comes upon it, in
 * the room of its side; its end is the script's, so that another may sleep the rest.
 *
 * Threads: any. LOCK ORDER: its wait list alone.
 */
#include <weft/test.h>

#include "base/alloc.h"
#include "io/piece.h"
#include "sync/leaf.h"

#include <stdio.h>
#include <string.h>

/* One reads at a time, and one writes. */
struct side {
    struct weft__seat seat; /* guards the rest */
    struct weft_sleep_until sleep;
    bool asleep;
};

struct script {
    weft_stream face;
    const weft_script_step *steps; /* constant, as the count */
    size_t count;
    struct side reads;
    struct side writes;
    struct weft__waitlist list; /* guards the rest */
    size_t at;
    size_t moved;
    weft_time due;     /* of a wait; 0: nobody has come upon it */
    const char *wrong; /* what was; NULL: nothing so far */
    size_t wrong_at;   /* at which step */
};

/* Not an answer: a wait stands in the way. */
#define AT_WAIT (-EINPROGRESS)

static struct script *script_of(weft_stream *stream)
{
    return (struct script *)(void *)stream;
}

/* ---- holds: the lock ---- */

static const weft_script_step *step_of(const struct script *s)
{
    return s->at < s->count ? &s->steps[s->at] : NULL;
}

static void step_done(struct script *s)
{
    s->at++;
    s->moved = 0;
    s->due = 0;
}

static void moved(struct script *s, const weft_script_step *step, size_t bytes)
{
    s->moved += bytes;
    if (s->moved == step->weft__len) step_done(s);
}

static ssize_t is_wrong(struct script *s, const char *what)
{
    if (!s->wrong) {
        s->wrong = what;
        s->wrong_at = s->at;
    }
    return -EBADMSG;
}

static ssize_t give(struct script *s, const weft_script_step *step, const struct iovec *piece)
{
    size_t left = step->weft__len - s->moved;
    size_t bytes = left < piece->iov_len ? left : piece->iov_len;
    memcpy(piece->iov_base, step->weft__data + s->moved, bytes);
    moved(s, step, bytes);
    return (ssize_t)bytes;
}

static ssize_t fail(struct script *s, const weft_script_step *step)
{
    int error = (int)step->weft__value;
    step_done(s);
    return error < 0 ? error : -error;
}

static ssize_t try_read(void *self, const struct iovec *piece)
{
    struct script *s = self;
    const weft_script_step *step = step_of(s);
    if (!step) return 0;
    switch (step->weft__kind) {
    case WEFT__SCRIPT_GIVES:
        return give(s, step, piece);
    case WEFT__SCRIPT_ENDS:
        step_done(s);
        return 0;
    case WEFT__SCRIPT_READ_FAILS:
        return fail(s, step);
    case WEFT__SCRIPT_WAITS:
        return AT_WAIT;
    default: /* something is to be written first */
        return -EAGAIN;
    }
}

static ssize_t expect(struct script *s, const weft_script_step *step, const struct iovec *piece)
{
    size_t left = step->weft__len - s->moved;
    size_t bytes = left < piece->iov_len ? left : piece->iov_len;
    if (memcmp(piece->iov_base, step->weft__data + s->moved, bytes) != 0)
        return is_wrong(s, "something else was written");
    moved(s, step, bytes);
    return (ssize_t)bytes;
}

static ssize_t try_write(void *self, const struct iovec *piece)
{
    struct script *s = self;
    const weft_script_step *step = step_of(s);
    if (!step) return is_wrong(s, "written behind the last step");
    switch (step->weft__kind) {
    case WEFT__SCRIPT_EXPECTS:
        return expect(s, step, piece);
    case WEFT__SCRIPT_WRITE_FAILS:
        return fail(s, step);
    case WEFT__SCRIPT_WAITS:
        return AT_WAIT;
    default:
        return is_wrong(s, "written where a read was to come");
    }
}

/* ---- waits ---- */

/* When the wait that stands in the way is over; 0: there is none any more. */
static weft_time wait_due(struct script *s)
{
    weft_time now = weft_now();
    weft__waitlist_lock(&s->list);
    const weft_script_step *step = step_of(s);
    bool waits = step && step->weft__kind == WEFT__SCRIPT_WAITS;
    if (waits && s->due == 0)
        s->due = weft_later(now, step->weft__value > 0 ? step->weft__value : 1);
    weft_time due = waits ? s->due : 0;
    weft__waitlist_unlock(&s->list);
    return due;
}

/* The wait that ended at `due` is done, unless somebody else has found that already. */
static void wait_done(struct script *s, weft_time due)
{
    weft__waitlist_lock(&s->list);
    if (s->due == due) step_done(s);
    (void)weft__waitlist_unlock_wake_all(&s->list, &weft__sched);
}

/* READY: *got is 0, and it may try again; or why not. */
static weft_poll sleeps(struct script *s, struct side *side, weft_cx *cx, ssize_t *got)
{
    if (!side->asleep) {
        weft_time until = wait_due(s);
        *got = 0;
        if (until == 0) return WEFT_READY;
        side->sleep = (struct weft_sleep_until){.at = until};
    }
    weft_time due = side->sleep.at;
    bool over = weft_sleep_until_poll(&side->sleep, cx) == WEFT_READY;
    side->asleep = !over && !cx->probe;
    if (!over) return WEFT_PENDING;
    *got = side->sleep.ret;
    if (*got == 0) wait_done(s, due);
    return WEFT_READY;
}

/* ---- the table ---- */

static weft_poll act(struct script *s, struct side *side, struct weft_io *io, weft__try_fn *tries,
                     const struct iovec *piece, weft_cx *cx, ssize_t *got)
{
    for (;;) {
        if (!side->asleep) {
            if (weft__try_poll(&s->list, io, tries, s, piece, cx, got) == WEFT_PENDING)
                return WEFT_PENDING;
            if (*got != AT_WAIT) return WEFT_READY;
        }
        if (sleeps(s, side, cx, got) == WEFT_PENDING) return WEFT_PENDING;
        if (*got < 0) return WEFT_READY;
    }
}

static weft_poll read_one(weft_stream *stream, struct weft_io *io, const struct iovec *piece,
                          weft_cx *cx, ssize_t *got)
{
    struct script *s = script_of(stream);
    return act(s, &s->reads, io, try_read, piece, cx, got);
}

static weft_poll write_one(weft_stream *stream, struct weft_io *io, const struct iovec *piece,
                           weft_cx *cx, ssize_t *got)
{
    struct script *s = script_of(stream);
    return act(s, &s->writes, io, try_write, piece, cx, got);
}

static weft_poll read_face(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                           int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__pieces p = {stream,  io, iov, count, flags, &script_of(stream)->reads.seat,
                             read_one};
    return weft__pieces_poll(&p, cx, ret, done);
}

static weft_poll write_face(weft_stream *stream, struct weft_io *io, const struct iovec *iov,
                            int count, unsigned flags, weft_cx *cx, ssize_t *ret, size_t *done)
{
    struct weft__pieces p = {stream,   io, iov, count, flags, &script_of(stream)->writes.seat,
                             write_one};
    return weft__pieces_poll(&p, cx, ret, done);
}

static weft_poll shut_face(weft_stream *stream, struct weft_io *io, weft_cx *cx, int *ret)
{
    (void)stream, (void)io, (void)cx;
    *ret = 0;
    return WEFT_READY;
}

static void close_face(weft_stream *stream)
{
    struct script *s = script_of(stream);
    weft_assert(weft__seat_is_free(&s->reads.seat));  /* nobody reads a script that is closed */
    weft_assert(weft__seat_is_free(&s->writes.seat)); /* nor writes */
    weft__waitlist_done(&s->list);
    weft__free(s);
}

static const weft_stream_ops table = {"script", read_face, write_face, shut_face, close_face, NULL};

/* ---- beginning and end ---- */

/* One of no bytes would never be done. */
static bool is_sound(const weft_script_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool carries = steps[i].weft__kind == WEFT__SCRIPT_GIVES ||
                       steps[i].weft__kind == WEFT__SCRIPT_EXPECTS;
        if (carries && (!steps[i].weft__data || steps[i].weft__len == 0)) return false;
    }
    return true;
}

int weft_script_new(const weft_script_step *steps, size_t count, weft_stream **into)
{
    if (!into || (count > 0 && !steps) || !is_sound(steps, count)) return -EINVAL;
    struct script *s = weft__alloc(sizeof(*s));
    if (!s) return -ENOMEM;
    s->face.ops = &table;
    s->steps = steps;
    s->count = count;
    weft__waitlist_init(&s->list);
    *into = &s->face;
    return 0;
}

int weft_script_check(weft_stream *stream)
{
    if (!stream || stream->ops != &table) return -EINVAL;
    struct script *s = script_of(stream);
    weft__waitlist_lock(&s->list);
    const char *wrong = s->wrong;
    size_t at = wrong ? s->wrong_at : s->at;
    if (!wrong && s->at < s->count) wrong = "it was not done";
    weft__waitlist_unlock(&s->list);
    if (!wrong) return 0;
    (void)fprintf(stderr, "weft: script, step %zu of %zu: %s\n", at + 1, s->count, wrong);
    return -EBADMSG;
}
