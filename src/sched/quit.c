/* SPDX-License-Identifier: MIT
 *
 * quit - a thread that ends inside a task: pthread_exit in its body, or pthread_cancel from elsewhere.
 *
 * A worker that vanishes takes the task, its ring and its share of every promise of the idle word with it, and the program hangs
 * somewhere else, later. So the end of such a thread ends the process, by name. A thread is inside a task while it is a worker:
 * here->worker says so, and a worker's loop clears it on its way out.
 *
 * Threads: each for itself. The question is asked at the thread's end (sys/thread.h), which comes on its own stack also when
 * a fiber's was the one that pthread_exit was called on.
 * Rejected: a cleanup handler (glibc compares addresses of frames to find out which have been left; a fiber's are elsewhere).
 */
#include "sched/sched.h"

#include "task/context.h"

#include <stdio.h>
#include <stdlib.h>

/* Unsanitized: the frames that the thread left without returning are still marked as in use. */
WEFT__UNSANITIZED static void thread_ended(struct weft__thread_exit *unused)
{
    const struct weft__here *here = weft__here();

    (void)unused;
    if (!here->worker) return;
    if (here->task) {
        const struct weft_site *site = here->task->site;
        fprintf(stderr, "weft: a thread ended inside task '%s' (spawned at %s:%u)",
                weft__name_of(here->task), site->file, site->line);
    } else {
        fprintf(stderr, "weft: worker %u of '%s' ended on its own", here->worker->index,
                here->worker->rt->name);
    }
    fputs(
        ": pthread_exit and pthread_cancel end a worker, not a task; return from the task instead\n",
        stderr);
    abort();
}

static _Thread_local struct weft__thread_exit watched __attribute__((tls_model("initial-exec")));

void weft__quit_watch(void)
{
    (void)weft__thread_at_exit(&watched, thread_ended); /* without memory for it nobody is told */
}
