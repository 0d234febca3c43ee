/* SPDX-License-Identifier: MIT
 *
 * serve - the clock, the window and the lines of a server (serve.h).
 */
#include "serve.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct serve serve_here;

static void give_up(const char *what)
{
    perror(what);
    exit(EXIT_FAILED);
}

/* ---- the window ---- */

struct mark {
    _Atomic bool set;
    uint64_t counted;
    struct rusage usage;
};

static struct mark window_begin;
static struct mark window_end;
static volatile sig_atomic_t stopped;
static volatile sig_atomic_t listener = -1; /* of serve_listen */

static void mark_set(struct mark *mark)
{
    mark->counted = atomic_load_explicit(&serve_here.counted, memory_order_relaxed);
    (void)getrusage(RUSAGE_SELF, &mark->usage);
    atomic_store(&mark->set, true); /* for the report, which may be another thread's */
}

static void on_signal(int number)
{
    switch (number) {
    case SIGUSR1:
        mark_set(&window_begin);
        break;
    case SIGUSR2:
        mark_set(&window_end);
        break;
    default:
        stopped = 1;
        if (listener >= 0)
            (void)shutdown(listener, SHUT_RDWR); /* an event: the loop is not to sleep upon it */
    }
}

static void handle(int number)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: who waits is to look */
    if (sigaction(number, &action, NULL) < 0) give_up("sigaction");
}

/* ---- beginning ---- */

static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) give_up("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) give_up("setrlimit");
}

void serve_begin(const char *name, uint64_t request_bytes, bool shared)
{
    serve_here.name = name;
    serve_here.request_bytes = request_bytes;
    serve_here.shared = shared;
    raise_descriptors();
    handle(SIGUSR1);
    handle(SIGUSR2);
    (void)signal(SIGPIPE, SIG_IGN);
}

uint16_t serve_port(uint64_t number)
{
    if (number <= UINT16_MAX) return (uint16_t)number;
    fprintf(stderr, "%llu is no port: those are 1 to 65535, and 0 is one that is free\n",
            (unsigned long long)number);
    exit(EXIT_USAGE);
}

void serve_listens(unsigned port)
{
    printf("%s_listens %u\n", serve_here.name, port);
    (void)fflush(stdout);
}

int serve_listen(uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) give_up("socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* connections inherit it */
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) give_up("bind");
    if (listen(fd, SOMAXCONN) < 0) give_up("listen");
    if (getsockname(fd, (struct sockaddr *)&at, &bytes) < 0) give_up("getsockname");
    listener = fd;
    serve_listens(ntohs(at.sin_port));
    return fd;
}

void serve_stops_by_signal(void)
{
    handle(SIGTERM);
    handle(SIGINT);
}

bool serve_is_stopped(void)
{
    return stopped;
}

/* ---- the report ---- */

/* By what is open, and not by what was asked for: a driver that is not there may have been replaced by another. */
static const char *backend(void)
{
    const char *found = "none";
    char path[300];
    char link[64];
    DIR *dir = opendir("/proc/self/fd");

    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
        ssize_t len = readlink(path, link, sizeof(link) - 1);
        link[len < 0 ? 0 : len] = '\0';
        if (strcmp(link, "anon_inode:[io_uring]") == 0) {
            found = "io_uring";
            break; /* beside an epoll of something else */
        }
        if (strcmp(link, "anon_inode:[eventpoll]") == 0) found = "epoll";
    }
    if (dir) closedir(dir);
    return found;
}

static double us_between(struct timeval from, struct timeval to)
{
    return (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_usec - from.tv_usec);
}

void serve_report(void)
{
    struct mark *from = &window_begin; /* zero, if nobody has begun */
    struct mark *to = &window_end;

    if (!atomic_load(&to->set)) mark_set(to);
    uint64_t unit = serve_here.request_bytes ? serve_here.request_bytes : 1;
    uint64_t requests = (to->counted - from->counted) / unit;
    double per = requests ? 1.0 / (double)requests : 0;
    double user = us_between(from->usage.ru_utime, to->usage.ru_utime) * per;
    double system = us_between(from->usage.ru_stime, to->usage.ru_stime) * per;
    const char *name = serve_here.name;

    printf("%s %.3f us %s\n", name, user + system, backend());
    printf("%s_user %.3f\n%s_system %.3f\n", name, user, name, system);
    printf("%s_requests %llu\n", name, (unsigned long long)requests);
    (void)fflush(stdout);
}
