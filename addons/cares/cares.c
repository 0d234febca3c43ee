/* SPDX-License-Identifier: MIT
 *
 * cares - names by c-ares, as a resolver of weft's: weft/cares.h.
 *
 *     OPENS    a job on a thread that may block: the system's files are read, a channel is made, the first questions are sent
 *     ASKS     whoever polls the query has the channel: it waits for its sockets and for its next timeout, and lets c-ares go on
 *     CLOSES   answered, failed or given up: the channel goes, with its sockets, and the waits for those settle
 *     OPENS -> ASKS      [the job has ended]
 *     OPENS -> gone      [given up: the job disposes of it]
 *     ASKS  -> CLOSES    [c-ares has answered; a socket cannot be waited for; told to stop]
 *
 * ONE CHANNEL FOR EACH QUERY  It belongs to the job, then to the one task that polls; so c-ares, which knows no threads, needs no lock, and no task has to
 * live beside the queries to drive it. To give one up is to destroy its channel: nothing is left that would have to be accounted for. Each query
 * has a port of its own, which makes answers harder to forge, and sees the resolv.conf of its day. The price is a few small files and a socket a query.
 * SOCKETS are opened here, by the functions that c-ares lets one put in the place of the system's: so they are weft's from the beginning, and are closed by
 * it while somebody still waits for them. A socket's record goes when c-ares has closed it and its waits have settled.
 *
 * Stands on weft's public headers alone. Threads: one at a time has a query; resolvers are constant.
 * Rejected: one channel for each runtime (a lock around all of c-ares, callbacks under it, a task that drives it, and no way to cancel one query: 1.18
 * cancels all of a channel); descriptors that c-ares owns, watched by copies (a second descriptor for each socket).
 */
#include <weft/cares.h>

#include <weft/fd.h>
#include <weft/rt.h>
#include <weft/select.h>
#include <weft/time.h>

#include <ares.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* As the C library's. Doubled: a dead server is noticed twice as late. */
#define TIMEOUT_MS 5000
#define TRIES      2

struct cares {
    weft_resolver resolver; /* first: one is the other */
    struct ares_options options;
    int options_mask;
    const char *servers; /* NULL: the system's. The text lies behind */
    char text[];
};

/* A side of a socket: what c-ares wants of it, and our wait for that. */
struct side {
    bool wanted;
    bool waits; /* the wait has begun, and is polled until it has settled */
    bool ready; /* c-ares is to be told */
    struct weft_fd_wait wait;
};

struct socket {
    struct socket *next;
    weft_fd *watch; /* NULL: closed */
    int fd;
    struct side in;
    struct side out;
};

struct query {
    const struct cares *cares;
    weft_rt *rt;
    enum weft_family family;
    ares_channel channel; /* NULL: none yet, or no more */
    struct socket *sockets;
    bool answered;
    int status;    /* of c-ares, once it is answered */
    int error;     /* what ends it on our side; 0: nothing */
    int no_socket; /* why the first that could not be had was not; 0: all could */
    struct ares_addrinfo *found;
    char host[];
};

/* ---- c-ares' sockets, which are weft's ------------------------------------------------------- */

static struct socket *socket_of(struct query *q, ares_socket_t fd)
{
    struct socket *s = q->sockets;
    while (s && !(s->watch && s->fd == fd))
        s = s->next;
    return s;
}

/* On the runtime of the task that polls; of a plain thread, and of the job, on the query's. */
static int watch(struct query *q, int fd)
{
    struct socket *s = calloc(1, sizeof(*s));
    if (!s) return -ENOMEM;
    weft_rt *was = weft_rt_enter(q->rt);
    int r = weft_fd_open(fd, &s->watch);
    (void)weft_rt_enter(was);
    if (r < 0) {
        free(s);
        return r;
    }
    s->fd = fd;
    s->next = q->sockets;
    q->sockets = s;
    return 0;
}

static ares_socket_t socket_opens(int domain, int type, int protocol, void *query)
{
    struct query *q = query;
    int fd = socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    int r = fd < 0 ? -errno : watch(q, fd);
    if (r == 0) return fd;
    if (fd >= 0) close(fd);
    if (!q->no_socket) q->no_socket = r;
    errno = -r; /* c-ares passes the server over */
    return ARES_SOCKET_BAD;
}

static int socket_closes(ares_socket_t fd, void *query)
{
    struct socket *s = socket_of(query, fd);
    if (!s) return 0;
    weft_close(s->watch); /* who waits for it is answered */
    s->watch = NULL;
    s->in.wanted = false;
    s->out.wanted = false;
    return 0;
}

static int socket_connects(ares_socket_t fd, const struct sockaddr *to, ares_socklen_t bytes,
                           void *query)
{
    (void)query;
    return connect(fd, to, bytes);
}

static ares_ssize_t socket_receives(ares_socket_t fd, void *into, size_t bytes, int flags,
                                    struct sockaddr *from, ares_socklen_t *from_bytes, void *query)
{
    (void)query;
    return recvfrom(fd, into, bytes, flags, from, from_bytes);
}

static ares_ssize_t socket_sends(ares_socket_t fd, const struct iovec *pieces, int count,
                                 void *query)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                             .msg_iovlen = (size_t)count};
    (void)query;
    return sendmsg(fd, &message, MSG_NOSIGNAL); /* a server that hangs up is no SIGPIPE */
}

static const struct ares_socket_functions socket_functions = {
    .asocket = socket_opens,
    .aclose = socket_closes,
    .aconnect = socket_connects,
    .arecvfrom = socket_receives,
    .asendv = socket_sends,
};

/* By c-ares: what it wants to be told of. */
static void socket_wanted(void *query, ares_socket_t fd, int readable, int writable)
{
    struct socket *s = socket_of(query, fd);
    if (!s) return;
    s->in.wanted = readable;
    s->out.wanted = writable;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* As the system's resolver has it (weft/dns.h), so that nobody sees who was asked. */
static int error_of(int status)
{
    switch (status) {
    case ARES_SUCCESS:
        return 0;
    case ARES_ENODATA:
    case ARES_ENOTFOUND:
    case ARES_ENONAME:
    case ARES_EBADNAME:
    case ARES_EFORMERR: /* so says the C library */
        return -ENOENT;
    case ARES_ESERVFAIL:
    case ARES_ENOTIMP:
    case ARES_EREFUSED:
    case ARES_ECONNREFUSED:
    case ARES_ETIMEOUT:
    case ARES_EBADRESP:
    case ARES_EOF:
        return -EAGAIN;
    case ARES_EFILE:
        return -EIO;
    case ARES_EBADFAMILY:
        return -EAFNOSUPPORT;
    case ARES_ENOMEM:
        return -ENOMEM;
    default:
        return -EINVAL;
    }
}

/* ---- channels -------------------------------------------------------------------------------- */

static int channel_new(const struct cares *cares, struct query *q, ares_channel *into)
{
    struct ares_options options = cares->options;
    ares_channel channel;
    options.sock_state_cb = socket_wanted;
    options.sock_state_cb_data = q;
    int mask = cares->options_mask | ARES_OPT_SOCK_STATE_CB;
    int status = ares_init_options(&channel, &options, mask);
    if (status != ARES_SUCCESS) return error_of(status);
    ares_set_socket_functions(channel, &socket_functions, q);
    if (cares->servers) status = ares_set_servers_ports_csv(channel, cares->servers);
    if (status == ARES_SUCCESS) {
        *into = channel;
        return 0;
    }
    ares_destroy(channel);
    return status == ARES_ENOMEM ? -ENOMEM : -EINVAL;
}

/* ---- queries --------------------------------------------------------------------------------- */

static struct query *query_new(const weft_resolver *resolver, const char *host, weft_rt *rt,
                               enum weft_family family)
{
    size_t bytes = strlen(host) + 1;
    struct query *q = calloc(1, sizeof(*q) + bytes);
    if (!q) return NULL;
    q->cares = (const struct cares *)(const void *)resolver;
    q->rt = rt;
    q->family = family;
    memcpy(q->host, host, bytes);
    return q;
}

/* The channel goes, and with it what is under way. */
static void query_closes(struct query *q)
{
    if (q->channel) ares_destroy(q->channel);
    q->channel = NULL;
}

/* Takes it, closed, when all waits have settled. */
static void query_free(struct query *q)
{
    while (q->sockets) {
        struct socket *s = q->sockets;
        q->sockets = s->next;
        free(s);
    }
    if (q->found) ares_freeaddrinfo(q->found);
    free(q);
}

static void query_dispose(void *query, int64_t ret)
{
    (void)ret;
    query_closes(query);
    query_free(query);
}

/* By c-ares, once. */
static void query_answered(void *query, int status, int timeouts, struct ares_addrinfo *found)
{
    struct query *q = query;
    (void)timeouts;
    q->answered = true;
    q->status = status;
    q->found = found;
}

/* The job: by a thread that may block. */
static int query_opens(struct query *q)
{
    static const int families[] = {AF_UNSPEC, AF_INET, AF_INET6};
    struct ares_addrinfo_hints hints = {.ai_family = families[q->family],
                                        .ai_socktype = SOCK_STREAM};
    int r = channel_new(q->cares, q, &q->channel);
    if (r < 0) return r;
    ares_getaddrinfo(q->channel, q->host, NULL, &hints, query_answered, q);
    return 0;
}

static bool query_is_over(const struct query *q)
{
    return q->answered || q->error;
}

static weft_time query_timeout(struct query *q)
{
    struct timeval room;
    const struct timeval *in = ares_timeout(q->channel, NULL, &room);
    return in ? weft_secs(in->tv_sec) + weft_us(in->tv_usec) : WEFT_FOREVER;
}

static struct socket *query_ready_socket(struct query *q)
{
    struct socket *s = q->sockets;
    while (s && !(s->watch && (s->in.ready || s->out.ready)))
        s = s->next;
    return s;
}

/* What is ready, and what has timed out. Sockets come and go meanwhile. */
static void query_goes_on(struct query *q)
{
    struct socket *s;
    while (!q->answered && (s = query_ready_socket(q))) {
        ares_socket_t in = s->in.ready ? s->fd : ARES_SOCKET_BAD;
        ares_socket_t out = s->out.ready ? s->fd : ARES_SOCKET_BAD;
        s->in.ready = false;
        s->out.ready = false;
        ares_process_fd(q->channel, in, out);
    }
    if (!q->answered) ares_process_fd(q->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static size_t count_of(const struct ares_addrinfo_node *node)
{
    size_t count = 0;
    for (; node; node = node->ai_next)
        count++;
    return count;
}

static int query_gives(const struct query *q, weft_addr_list **into)
{
    const struct ares_addrinfo_node *first = q->found ? q->found->nodes : NULL;
    weft_addr *addrs = calloc(count_of(first) + 1, sizeof(*addrs));
    size_t count = 0;
    if (!addrs) return -ENOMEM;
    for (const struct ares_addrinfo_node *n = first; n; n = n->ai_next)
        count += weft_addr_from(n->ai_addr, n->ai_addrlen, &addrs[count]) == 0;
    int r = weft_addr_list_new(addrs, count, into);
    free(addrs);
    return r;
}

static int query_result(const struct query *q, weft_addr_list **into)
{
    if (q->error) return q->error;
    if (q->status == ARES_ECONNREFUSED && q->no_socket) return q->no_socket;
    int r = error_of(q->status);
    return r < 0 ? r : query_gives(q, into);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* True: it has become ready. */
static bool side_looks(struct query *q, struct socket *s, struct side *side,
                       enum weft_fd_side which, weft_cx *cx, bool begins)
{
    if (!side->waits) {
        if (!side->wanted || !begins) return false;
        side->wait = (struct weft_fd_wait){.fd = s->watch, .side = which};
        side->waits = true;
    }
    if (weft_fd_wait_poll(&side->wait, cx) == WEFT_PENDING) return false;
    side->waits = false;
    int r = side->wait.ret;
    side->ready = r == 0 && side->wanted;
    if (r < 0 && s->watch && r != -ECANCELED && r != -ETIME) q->error = r;
    return side->ready || q->error;
}

static bool is_over(const struct socket *s)
{
    return !s->watch && !s->in.waits && !s->out.waits;
}

/* All of them: which are ready, which have settled and can go. True: at least one is ready. */
static bool sockets_look(struct query *q, weft_cx *cx, bool begin)
{
    bool any = false;
    struct socket **link = &q->sockets;
    for (struct socket *s; (s = *link);) {
        any |= side_looks(q, s, &s->in, WEFT_FD_READ, cx, begin);
        any |= side_looks(q, s, &s->out, WEFT_FD_WRITE, cx, begin);
        if (is_over(s)) {
            *link = s->next;
            free(s);
        } else {
            link = &s->next;
        }
    }
    return any;
}

/* Until a socket is ready. */
struct ready {
    WEFT_FRAME(int);
    struct query *query;
};

static weft_poll ready_poll(void *frame, weft_cx *cx)
{
    struct ready *f = frame;
    int why = weft_cx_cancelled(cx);
    bool any = sockets_look(f->query, cx, !why);
    f->ret = any ? 0 : why;
    return any || why ? WEFT_READY : WEFT_PENDING;
}

/* Until nobody waits for a socket any more: all are closed. */
struct settled {
    WEFT_FRAME(int);
    struct query *query;
};

static weft_poll settled_poll(void *frame, weft_cx *cx)
{
    struct settled *f = frame;
    (void)sockets_look(f->query, cx, false);
    return f->query->sockets ? WEFT_PENDING : WEFT_READY;
}

/* ---- the resolver ---------------------------------------------------------------------------- */

struct asks {
    WEFT_LOOKUP;
    struct query *query;
    int why; /* told to stop; 0: not */
    struct weft_blocking opens;
    struct weft_select select;
    struct ready ready;
    struct weft_sleep sleep;
    struct settled settled;
};

static weft_async(asks)
{
    weft_begin;
    f->query = query_new(f->resolver, f->host, f->rt, f->family);
    if (!f->query) weft_return(-ENOMEM);
    weft_await(f->opens, weft_blocking, .call = weft_bind(query_opens, f->query),
               .dispose = query_dispose, .rt = f->rt, .name = "weft_cares");
    if (f->opens.ret == -ECANCELED || f->opens.ret == -ETIME) weft_return((int)f->opens.ret);
    if (f->opens.ret < 0) f->query->error = (int)f->opens.ret;
    while (!f->why && !query_is_over(f->query)) {
        weft_await(f->select, weft_select,
                   .arm = {weft_arm(f->ready, ready, f->query),
                           weft_arm(f->sleep, weft_sleep, query_timeout(f->query))});
        if (f->select.ret < 0) f->why = f->select.ret;
        if (!f->why && !f->query->error) query_goes_on(f->query);
    }
    f->ret = f->why ? f->why : query_result(f->query, &f->found);
    query_closes(f->query);
    weft_await(f->settled, settled, f->query);
    query_free(f->query);
    weft_end;
}

/* ---- making one ------------------------------------------------------------------------------ */

static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static int library_status;

/* For the process's whole life. */
static void library_begins(void)
{
    library_status = ares_library_init(ARES_LIB_INIT_ALL);
}

static struct cares *cares_new(const weft_cares_opts *opts)
{
    size_t bytes = opts->servers ? strlen(opts->servers) + 1 : 0;
    struct cares *c = calloc(1, sizeof(*c) + bytes);
    if (!c) return NULL;
    c->resolver = (weft_resolver){sizeof(struct asks), asks_poll};
    c->options.timeout = (int)(opts->timeout_ms ? opts->timeout_ms : TIMEOUT_MS);
    c->options.tries = (int)(opts->tries ? opts->tries : TRIES);
    c->options.flags = opts->tcp ? ARES_FLAG_USEVC : 0;
    c->options_mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_FLAGS;
    if (bytes) c->servers = memcpy(c->text, opts->servers, bytes);
    return c;
}

/* What it is told can be told to a channel. */
static int cares_check(const struct cares *cares)
{
    ares_channel channel = NULL;
    int r = channel_new(cares, NULL, &channel);
    if (r == 0) ares_destroy(channel);
    return r;
}

int weft_cares_new(const weft_cares_opts *opts, weft_resolver **into)
{
    if (!into || (opts && (opts->timeout_ms > INT32_MAX || opts->tries > INT32_MAX)))
        return -EINVAL;
    pthread_once(&library_once, library_begins);
    if (library_status != ARES_SUCCESS) return error_of(library_status);
    struct cares *c = cares_new(opts ? opts : &(weft_cares_opts){.servers = NULL});
    if (!c) return -ENOMEM;
    int r = cares_check(c);
    if (r < 0) {
        free(c);
        return r;
    }
    *into = &c->resolver;
    return 0;
}

void weft_cares_free(weft_resolver *resolver)
{
    free(resolver);
}
