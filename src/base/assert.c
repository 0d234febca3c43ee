/* SPDX-License-Identifier: MIT
 *
 * assert - what a false fact prints before it ends the process.
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void (*weft__assert_hook)(void);

/* Set while the hook runs: an assert that fails inside it must end the process, not call it again. */
static _Thread_local bool in_hook;

void weft__assert_failed(const char *fact, const char *file, int line)
{
    fprintf(stderr, "weft: %s:%d: this should hold and does not: %s\n", file, line, fact);
    if (weft__assert_hook && !in_hook) {
        in_hook = true;
        weft__assert_hook();
    }
    abort();
}
