/* SPDX-License-Identifier: MIT
 *
 * mutex - what those who stand on the mutex ask of it.
 */
#ifndef WEFT_SYNC_MUTEX_H
#define WEFT_SYNC_MUTEX_H

#include <weft/lock.h>

/* Does this task or thread hold it? */
bool weft__mutex_is_mine(weft_mutex *mutex);

/* As weft__holder_misuse, of who has this one. */
int weft__mutex_misuse(weft_mutex *mutex, const char *what, const char *at, int error);

#endif
