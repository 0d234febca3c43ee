/* SPDX-License-Identifier: MIT
 *
 * pubsub - channels that clients listen to. Each client has an inbox, a weft channel of messages, in which those of all its subscriptions arrive. It is
 * bounded: whoever publishes never waits; the inbox of a client that does not read is closed, and with it the client.
 */
#ifndef MINI_REDIS_PUBSUB_H
#define MINI_REDIS_PUBSUB_H

#include "resp.h"

#include <weft/weft.h>

struct message { /* shared by all inboxes that it lies in */
    _Atomic int refs;
    struct out text; /* as it goes to the clients */
};
typedef WEFT_CHAN(struct message *) message_chan;

struct inbox {
    message_chan *messages; /* NULL: it never listened to anything */
    int64_t subscriptions;
};

/* Each answers what it did to `o`, and returns 0; or -ENOMEM, -ECANCELED, -ETIME: then nothing. */
int subscribe(struct inbox *in, struct slice channel, struct out *o);
int unsubscribe(struct inbox *in, const struct slice *channel,
                struct out *o); /* NULL: from any one */
int publish(struct slice channel, struct slice text, struct out *o);

void message_unref(struct message *m);
void inbox_done(struct inbox *in); /* also when the task was told to stop */

#endif
