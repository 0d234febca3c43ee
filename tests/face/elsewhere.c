/* SPDX-License-Identifier: MIT
 *
 * A child frame on the stack of the poll is refused in every build: the process names the place and aborts.
 */
#include "face.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct careless {
    WEFT_FRAME(int);
    int left;
};

static weft_async(careless)
{
    struct countdown local = {.left = 0}; /* without a value, gcc warns of it already */
    weft_begin;
    weft_await(local, countdown, f->left);
    weft_return(local.ret);
    weft_end;
}

int main(void)
{
    int status = 0;
    int end[2];
    char text[512] = "";

    CHECK_EQ(pipe(end), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(end[1], STDERR_FILENO);
        weft_run(careless, .left = 0);
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(read(end[0], text, sizeof text - 1) > 0);
    CHECK(strstr(text, "elsewhere.c:") && strstr(text, "put it into the frame"));
    return 0;
}
