/* SPDX-License-Identifier: MIT
 *
 * test - run a test of your own on a runtime whose clock stands.
 *
 *     static int times_out(void)
 *     {
 *         weft_time before = weft_now();
 *         if (fetch_with_retries("nowhere") != -ETIMEDOUT) return -EBADMSG;
 *         return weft_now() - before == weft_mins(5) ? 0 : -ETIME;     five minutes, at no time at all
 *     }
 *     WEFT_TEST_MAIN(times_out)          or weft_test_run(times_out) inside a test of any framework
 *
 * The test is a fiber on a current-thread runtime with a fixed seed: all of it happens on the calling thread, and in
 * the same order each time, as long as nothing comes from other threads or from the kernel. Its clock stands, and moves
 * to the next deadline when nothing else is left to do (time.h). WEFT_WORKERS and WEFT_PAUSED do not change that; WEFT_SEED
 * does the order. It is not part of weft.h.
 */
#ifndef WEFT_TEST_H
#define WEFT_TEST_H

#include <weft/stream.h>
#include <weft/time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Run the test to its end, then stop its runtime: tasks that it leaves behind are cancelled and waited for.
 * Returns what the test returned; -EDEADLK, with one line on stderr, if it waits and nothing is left that could end
 * the wait (a blocking job, a timer, a task that can run): it was then cancelled. What only another thread could bring is
 * taken for nothing: such a test wants a runtime of its own. -EBUSY in a task or a turn; -ENOMEM and what weft_rt_new answers.
 * Context: a plain thread. */
WEFT_API int weft_test_run(int (*test)(void));

/* The same as a whole program: names the error, and exits with 1. */
WEFT_API int weft__test_main(int (*test)(void), const char *name);
#define WEFT_TEST_MAIN(test)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        return weft__test_main(test, #test);                                                       \
    }

/* ---- a stream that follows a script --------------------------------------------------------------------------------------
 *
 *     static const weft_script_step steps[] = {
 *         WEFT_SCRIPT_EXPECTS("HELO me\r\n"),           what must be written, in pieces of any size
 *         WEFT_SCRIPT_WAITS(weft_secs(3)),              then nothing happens for a while
 *         WEFT_SCRIPT_GIVES("250 fine\r\n"),            then this is to be read
 *         WEFT_SCRIPT_READ_FAILS(ECONNRESET),           and the next read fails, once
 *     };
 *     r = weft_script_new(steps, 4, &stream);
 *     ... the code that is tested ...
 *     r = weft_script_check(stream);                    0: it has done all that, and nothing else
 *     weft_close(stream);
 *
 * Steps come in order. A read that comes early waits for its turn; a write that does not match, or comes early, is -EBADMSG. Behind the last step reads
 * find the end. A wait begins when somebody reads or writes at it; given up, it goes on. */
typedef struct weft_script_step {
    int weft__kind;
    const char *weft__data;
    size_t weft__len;
    int64_t weft__value;
} weft_script_step;

enum {
    WEFT__SCRIPT_GIVES,
    WEFT__SCRIPT_ENDS,
    WEFT__SCRIPT_READ_FAILS,
    WEFT__SCRIPT_EXPECTS,
    WEFT__SCRIPT_WRITE_FAILS,
    WEFT__SCRIPT_WAITS
};
#define WEFT_SCRIPT_GIVES(text)        {WEFT__SCRIPT_GIVES, (text), sizeof(text) - 1, 0}
#define WEFT_SCRIPT_EXPECTS(text)      {WEFT__SCRIPT_EXPECTS, (text), sizeof(text) - 1, 0}
#define WEFT_SCRIPT_ENDS               {WEFT__SCRIPT_ENDS, NULL, 0, 0} /* one read finds the end */
#define WEFT_SCRIPT_READ_FAILS(error)  {WEFT__SCRIPT_READ_FAILS, NULL, 0, (error)}
#define WEFT_SCRIPT_WRITE_FAILS(error) {WEFT__SCRIPT_WRITE_FAILS, NULL, 0, (error)}
#define WEFT_SCRIPT_WAITS(ns)          {WEFT__SCRIPT_WAITS, NULL, 0, (ns)}

/* Gives a stream, for weft_close. Pins the steps until then. Context: anywhere. Returns 0; -ENOMEM; -EINVAL. */
WEFT_API int weft_script_new(const weft_script_step *steps, size_t count, weft_stream **into)
    __attribute__((warn_unused_result));

/* Was all of it done? Returns 0; -EBADMSG, with a line on stderr: something else was written, or steps are left; -EINVAL: it has no script. */
WEFT_API int weft_script_check(weft_stream *stream) __attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif

#endif
