/* SPDX-License-Identifier: MIT
 *
 * embed - weft inside a loop that was there before: a runtime without threads, beside poll(2).
 *
 * The runtime has an fd that is readable while there is something to run; then the loop gives it a
 * turn. Here a thread outside delivers letters, and each wakes the task that waits for it.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <weft/weft.h>

enum { LETTERS = 3 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    int letter;        /* 0: none */
    weft_waker reader; /* whom to wake; word 0: nobody waits */
} box = {.lock = PTHREAD_MUTEX_INITIALIZER, .emptied = PTHREAD_COND_INITIALIZER};

/* A leaf future: waits for a letter. The waker outlives this poll, so it is kept by a reference. */
struct receive {
    WEFT_FRAME(int);
};
static weft_poll receive_poll(void *frame, weft_cx *cx)
{
    struct receive *f = frame;
    pthread_mutex_lock(&box.lock);
    f->ret = box.letter ? box.letter : weft_cx_cancelled(cx);
    box.letter = 0;
    weft_waker_unref(box.reader); /* of an earlier poll; nothing happens to word 0 */
    box.reader = f->ret ? (weft_waker){0} : weft_waker_ref(weft_cx_waker(cx));
    pthread_cond_signal(&box.emptied);
    pthread_mutex_unlock(&box.lock);
    return f->ret ? WEFT_READY : WEFT_PENDING;
}

struct reader {
    WEFT_FRAME(int);
    int i;
    struct receive letter;
};
static weft_async(reader)
{
    weft_begin;
    for (f->i = 0; f->i < LETTERS; f->i++) {
        weft_await(f->letter, receive);
        if (f->letter.ret < 0) weft_return(f->letter.ret);
        printf("letter %d\n", f->letter.ret);
    }
    weft_return(f->i);
    weft_end;
}

/* The thread: knows a mutex and a waker, and nothing of runtimes. */
static void *deliver(void *door)
{
    for (int letter = 1; letter <= LETTERS; letter++) {
        pthread_mutex_lock(&box.lock);
        while (box.letter)
            pthread_cond_wait(&box.emptied, &box.lock);
        box.letter = letter;
        weft_waker reader = box.reader;
        box.reader = (weft_waker){0};
        pthread_mutex_unlock(&box.lock);
        weft_waker_wake(reader); /* from any thread; the runtime's fd becomes readable */
        weft_waker_unref(reader);
    }
    return write(*(int *)door, "x", 1) == 1 ? NULL : door;
}

/* The loop, with an fd of its own beside the runtime's. */
static void loop(weft_rt *rt, int rt_fd, int own_fd, weft_task *task)
{
    struct pollfd fds[] = {{.fd = rt_fd, .events = POLLIN}, {.fd = own_fd, .events = POLLIN}};
    while (!weft_done(task) || fds[1].fd >= 0) {
        if (poll(fds, 2, -1) < 0) continue;            /* a signal */
        if (fds[0].revents) (void)weft_rt_turn(rt, 0); /* runs what is ready, and does not wait */
        if (fds[1].fd >= 0 && fds[1].revents) fds[1].fd = -1; /* the thread is through */
    }
}

int main(void)
{
    weft_rt *rt;
    int door[2], read_letters = 0;
    pthread_t thread;
    if (weft_rt_new(&(weft_rt_opts){.workers = -1}, &rt) < 0) return 1; /* -1: no threads */
    int rt_fd = weft_rt_fd(rt); /* below zero: poll would pass over it, and wait for ever */
    weft_task *task = weft_spawn_as((.rt = rt), reader);
    if (rt_fd < 0 || !task || pipe(door) < 0 || pthread_create(&thread, NULL, deliver, &door[1]))
        return 1;
    loop(rt, rt_fd, door[0], task);
    int r = weft_join(task, &read_letters); /* it is done: this does not wait */
    pthread_join(thread, NULL);
    (void)weft_rt_stop(rt, -1);
    close(door[0]);
    close(door[1]);
    printf("%d letters read\n", read_letters);
    return r < 0;
}
