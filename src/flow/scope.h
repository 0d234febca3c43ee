/* SPDX-License-Identifier: MIT
 *
 * scope - what the files of scopes share: the children behind a weft_scope, and the parts of its end.
 */
#ifndef WEFT_FLOW_SCOPE_H
#define WEFT_FLOW_SCOPE_H

#include "sync/kin.h"

#include <weft/scope.h>

_Static_assert(sizeof(struct weft__kin) <= sizeof(weft_scope), "a scope fits its place");

static inline struct weft__kin *weft__scope_kin(const weft_scope *scope)
{
    return (struct weft__kin *)(uintptr_t)scope;
}

/* Before the first listens. 0; -EDEADLK: it would wait for itself. */
int weft__scope_join_begins(struct weft_scope_join *f, const weft_cx *cx);

/* What the caller is told, and the scope's deadline, go to the children. */
void weft__scope_listens(struct weft_scope_join *f, weft_cx *cx);

#endif
