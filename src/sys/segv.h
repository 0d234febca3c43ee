/* SPDX-License-Identifier: MIT
 *
 * segv - a SIGSEGV handler that asks one question and else steps aside, and the stack it runs on.
 *
 * A stack that overflowed has no room for a handler, so every thread that may overflow one has an
 * alternate stack. One that the thread has already, and that is large enough, stays: it is the
 * program's or a sanitizer's, which will free it itself.
 * The handler is installed once for the process, over whatever was there, with the mask and the
 * flags that one had; what the question does not answer goes on to it as if nothing stood between.
 *     question says yes     the process dies by SIGSEGV, as without a handler
 *     a handler was there   it is called; one that wanted to be called once is taken out before
 *     default               the process dies by SIGSEGV
 *     ignored               a signal that was sent is ignored; a fault dies, as the kernel has it
 * A handler that the program installs later replaces this one; that is its right.
 *
 * Threads: install by any; init and done by the thread itself, on its own stack.
 */
#ifndef WEFT_SYS_SEGV_H
#define WEFT_SYS_SEGV_H

#include <stdbool.h>
#include <stddef.h>

struct weft__lock;

/* Asked in the handler, async-signal-safe: is the fault at `addr` ours, and has been reported? */
typedef bool weft__segv_question(const void *addr);

/* Install the handler, the first time; later calls change nothing. Returns 0; the error of
 * sigaction. */
int weft__segv_install(weft__segv_question *question);

/* For who freezes it around fork. */
struct weft__lock *weft__segv_lock(void);

/* Write to stderr, all of it if that can be. Async-signal-safe. */
void weft__segv_say(const char *text, size_t bytes);

/* A thread's alternate stack. Pinned from init to done. */
struct weft__altstack {
    void *memory; /* NULL: the thread had one that will do */
    size_t bytes;
    void *before; /* what the thread had; not large enough */
    size_t before_bytes;
    int before_flags;
};

/* See to it that the calling thread has an alternate stack. Returns 0; -ENOMEM; -EPERM on the
 * alternate stack itself. */
int weft__altstack_init(struct weft__altstack *a);

/* Put back what the thread had, unless it has changed it since. */
void weft__altstack_done(struct weft__altstack *a);

/* The same for the rest of the calling thread's life: done is called at its end. Asked for again it is there already. Returns 0;
 * -ENOMEM, -EAGAIN; -EPERM on the alternate stack itself, and the next call tries again. */
int weft__altstack_keep(void);

#endif
