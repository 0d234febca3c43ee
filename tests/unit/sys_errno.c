/* SPDX-License-Identifier: MIT
 *
 * The thread's errno, put aside and put back; each thread has its own.
 */
#include "sys/errno.h"

#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

TEST(errno_is_as_it_was)
{
    errno = EPIPE;
    int saved = weft__errno_save();
    ASSERT_EQ(saved, EPIPE);
    ASSERT_EQ(errno, EPIPE); /* looking changes nothing */
    ASSERT_EQ(close(-1), -1);
    ASSERT_EQ(weft__errno_save(), EBADF);
    weft__errno_restore(saved);
    ASSERT_EQ(errno, EPIPE);
}

static void *restores_another(void *saved)
{
    weft__errno_restore(*(int *)saved);
    ASSERT_EQ(errno, EIO);
    return NULL;
}

TEST(errno_of_another_thread_is_left_alone)
{
    pthread_t thread;
    int other = EIO;
    weft__errno_restore(EPIPE);
    ASSERT_OK(pthread_create(&thread, NULL, restores_another, &other));
    ASSERT_OK(pthread_join(thread, NULL));
    ASSERT_EQ(weft__errno_save(), EPIPE);
}
