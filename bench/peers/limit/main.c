/* SPDX-License-Identifier: MIT
 *
 * limit_bench CASE [WORKERS] [PORT] - echo and http by bare loops; WEFT_DRIVER says by which: epoll, which is the default, or io_uring.
 *
 * The command line is that of all sides, so WORKERS may be there: there is one thread, whatever it says, and anything above 1 is refused.
 */
#include "limit.h"
#include "serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_NO_CASE = 3 };

void limit_give_up(const char *what)
{
    fprintf(stderr, "limit_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

__attribute__((noreturn)) static void usage(const char *what, const char *text)
{
    fprintf(
        stderr,
        "limit_bench: %s%s\nusage: limit_bench echo|http [WORKERS] [PORT]; limit_bench --servers; WEFT_DRIVER=epoll|io_uring\n",
        what, text);
    exit(EXIT_USAGE);
}

static uint64_t number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') usage("no number: ", text);
    return value;
}

static enum limit_case find_case(const char *name)
{
    if (strcmp(name, "echo") == 0) return LIMIT_ECHO;
    if (strcmp(name, "http") == 0) return LIMIT_HTTP;
    fprintf(stderr, "limit_bench: there is no case %s\n", name);
    exit(EXIT_NO_CASE);
}

static bool is_uring(void)
{
    const char *driver = getenv("WEFT_DRIVER");
    if (!driver || !*driver || strcmp(driver, "epoll") == 0) return false;
    if (strcmp(driver, "io_uring") != 0) usage("WEFT_DRIVER is epoll or io_uring, not ", driver);
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) usage("a case is needed", "");
    if (strcmp(argv[1], "--list") == 0) return 0; /* none that ends by itself */
    if (strcmp(argv[1], "--servers") == 0) {
        puts("echo\nhttp");
        return 0;
    }
    enum limit_case which = find_case(argv[1]);
    if (argc > 2 && number(argv[2]) > 1) usage("there is one thread, not ", argv[2]);
    uint16_t port = serve_port(argc > 3 ? number(argv[3]) : SERVE_PORT);
    bool uring = is_uring();

    serve_begin(argv[1], which == LIMIT_ECHO ? SERVE_ECHO_BYTES : 0, false);
    serve_stops_by_signal();
    int listener = serve_listen(port);
    if (uring) {
        limit_uring(listener, which);
    } else {
        limit_epoll(listener, which);
    }
    serve_report();
    close(listener);
    return 0;
}
