/* SPDX-License-Identifier: MIT
 *
 * pubsub - see pubsub.h.
 */
#include "pubsub.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS        256
#define INBOX_MESSAGES 1024

struct subscription {
    struct subscription *next; /* in the bucket of its channel */
    struct inbox *inbox;
    size_t len;
    char channel[];
};

static weft_mutex m = WEFT_MUTEX_INIT; /* guards the table, and inboxes against being freed */
static struct subscription *table[BUCKETS];

/* holds: m. The next one of that channel (NULL: any), of that inbox (NULL: any). */
static struct subscription **next_of(struct subscription **s, const struct inbox *in,
                                     const struct slice *channel)
{
    while (*s && ((in && (*s)->inbox != in) ||
                  (channel && ((*s)->len != channel->len ||
                               memcmp((*s)->channel, channel->at, channel->len) != 0))))
        s = &(*s)->next;
    return s;
}

static struct subscription **find(const struct inbox *in, struct slice channel)
{
    return next_of(&table[slice_hash(channel) % BUCKETS], in, &channel);
}

static struct subscription **find_any(const struct inbox *in)
{
    struct subscription **s = NULL;
    for (int i = 0; i < BUCKETS && (!s || !*s); i++)
        s = next_of(&table[i], in, NULL);
    return s;
}

static void drop(struct subscription **s)
{
    struct subscription *gone = *s;
    gone->inbox->subscriptions--;
    *s = gone->next;
    free(gone);
}

static void tell(struct out *o, const char *what, const struct slice *channel, int64_t count)
{
    out_line(o, "*3");
    out_bulk(o, (struct slice){what, strlen(what)});
    channel ? out_bulk(o, *channel) : out_nil(o);
    out_int(o, count);
}

/* holds: m. */
static int add(struct inbox *in, struct slice channel)
{
    struct subscription **at = find(in, channel);
    if (*at) return 0;
    int r = in->messages ? 0 : weft_chan_new(INBOX_MESSAGES, &in->messages);
    struct subscription *s = r < 0 ? NULL : malloc(sizeof *s + channel.len);
    if (!s) return -ENOMEM;
    *s = (struct subscription){NULL, in, channel.len};
    memcpy(s->channel, channel.at, channel.len);
    *at = s;
    in->subscriptions++;
    return 0;
}

int subscribe(struct inbox *in, struct slice channel, struct out *o)
{
    int r = weft_lock(&m);
    if (r < 0) return r;
    r = add(in, channel);
    weft_unlock(&m);
    if (r == 0) tell(o, "subscribe", &channel, in->subscriptions);
    return r;
}

int unsubscribe(struct inbox *in, const struct slice *channel, struct out *o)
{
    int r = weft_lock(&m);
    if (r < 0) return r;
    struct subscription **s = channel ? find(in, *channel) : find_any(in);
    struct slice name = {NULL, 0};
    if (*s) name = (struct slice){(*s)->channel, (*s)->len};
    tell(o, "unsubscribe", channel ? channel : (*s ? &name : NULL),
         in->subscriptions - (*s != NULL));
    if (*s) drop(s);
    weft_unlock(&m);
    return 0;
}

/* ---- messages ---- */

void message_unref(struct message *msg)
{
    if (atomic_fetch_sub(&msg->refs, 1) > 1) return;
    free(msg->text.at);
    free(msg);
}

static struct message *message_new(struct slice channel, struct slice text)
{
    struct message *msg = calloc(1, sizeof *msg);
    if (!msg) return NULL;
    msg->refs = 1;
    out_line(&msg->text, "*3\r\n$7\r\nmessage");
    out_bulk(&msg->text, channel);
    out_bulk(&msg->text, text);
    if (!msg->text.failed) return msg;
    message_unref(msg);
    return NULL;
}

/* holds: m. */
static int64_t send_all(struct message *msg, struct slice channel)
{
    int64_t count = 0;
    for (struct subscription **s = find(NULL, channel); *s;
         s = next_of(&(*s)->next, NULL, &channel)) {
        atomic_fetch_add(&msg->refs, 1);
        int r = weft_try_send((*s)->inbox->messages, &msg);
        if (r == 0) {
            count++;
        } else {
            message_unref(msg); /* NOLINT(clang-analyzer-unix.Malloc): it cannot count */
            if (r == -EAGAIN)
                (void)weft_chan_close((*s)->inbox->messages); /* too slow: its client hears it */
        }
    }
    return count;
}

int publish(struct slice channel, struct slice text, struct out *o)
{
    struct message *msg = message_new(channel, text);
    if (!msg) return -ENOMEM;
    int r = weft_lock(&m);
    if (r == 0) {
        out_int(o, send_all(msg, channel));
        weft_unlock(&m);
    }
    message_unref(msg); /* NOLINT(clang-analyzer-unix.Malloc): see send_all */
    return r;
}

void inbox_done(struct inbox *in)
{
    if (!in->messages) return;
    int r = 0;
    WEFT_SHIELD(WEFT_FOREVER) r = weft_lock(&m); /* held by others for moments only */
    while (r == 0 && in->subscriptions > 0)
        drop(find_any(in));
    weft_unlock(&m);
    for (struct message *msg; weft_try_recv(in->messages, &msg) > 0;)
        message_unref(msg);
    weft_chan_free(in->messages);
}
