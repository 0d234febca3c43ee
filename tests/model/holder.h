/* SPDX-License-Identifier: MIT
 *
 * holder - who has a lock, in model tests of what has a holder: the actor whose poll this thread is in (leaf.h). A mistake is a
 * failure of the test; nobody is looked for who has ended.
 */
#ifndef MODEL_HOLDER_H
#define MODEL_HOLDER_H

#include "leaf.h"
#include "sync/holder.h"

uintptr_t weft__holder_self(void)
{
    struct actor *self = current[model_self()];
    return self ? (uintptr_t)self : 1;
}

bool weft__holder_report_ended(const struct weft__holder *holder, const char *what,
                               const void *lock)
{
    (void)holder;
    (void)what;
    (void)lock;
    return false;
}

int weft__holder_misuse(const struct weft__holder *holder, const char *what, const char *at,
                        int error)
{
    (void)holder;
    (void)at;
    model_fail_at(what, __FILE__, __LINE__);
    return error;
}

#endif
