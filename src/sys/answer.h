/* SPDX-License-Identifier: MIT
 *
 * answer - a system call's answer as ours: a count or an fd, or a negative errno. What a signal interrupts is done again.
 *
 *     int fd = (int)WEFT__ANSWER(WEFT__FAULT_SOCKET, socket(family, type, 0));
 * Each try stands behind the fault point of its kind. The errno is read right after its call, by the thread that made it.
 */
#ifndef WEFT_SYS_ANSWER_H
#define WEFT_SYS_ANSWER_H

#include "base/fault.h"

#include <errno.h>
#include <sys/types.h>

#define WEFT__ANSWER(kind, ...)                                                                    \
    ({                                                                                             \
        ssize_t weft__r;                                                                           \
        do {                                                                                       \
            weft__r = weft__fault(kind);                                                           \
            if (weft__r == 0 && (weft__r = (__VA_ARGS__)) < 0) weft__r = -errno;                   \
        } while (weft__r == -EINTR);                                                               \
        weft__r;                                                                                   \
    })

#endif
