/* SPDX-License-Identifier: MIT
 *
 * errno - put aside and put back.
 */
#include "sys/errno.h"

#include <errno.h>

int weft__errno_save(void)
{
    return errno;
}

void weft__errno_restore(int saved)
{
    errno = saved;
}
