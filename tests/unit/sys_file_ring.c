/* SPDX-License-Identifier: MIT
 *
 * file_ring: each request as an entry does what its system call does, with the same answer; what a ring does otherwise is not
 * asked of it.
 */
#include "limits.h"
#include "sys/fd.h"
#include "sys/file_ring.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct weft__ring ring;
static char dir[] = "/tmp/weft-file-ring-XXXXXX";

static void begin(void)
{
    int r = weft__ring_open(&ring, 4);
    if (r == 0 && weft__ring_probe(&ring, IORING_OP_LINKAT) < 0) {
        weft__ring_close(&ring);
        r = -ENOSYS;
    }
    if (r < 0) TEST_SKIP("no io_uring that does files here: %d", r);
    ASSERT(mkdtemp(dir));
}

static void end(void)
{
    ASSERT_OK(rmdir(dir));
    weft__ring_close(&ring);
}

/* What it answers, as the system call would. */
static int64_t does(struct weft__file_req req)
{
    struct weft__ring_done done;
    size_t bytes = weft__file_room_bytes(&req);
    void *room = bytes ? calloc(1, bytes) : NULL;
    struct io_uring_sqe *sqe = weft__ring_sqe(&ring);
    struct pollfd fd = {.fd = ring.fd, .events = POLLIN};

    weft__file_fill(&req, room, sqe);
    ASSERT_EQ(sqe->opcode, weft__file_opcode(&req));
    ASSERT_EQ(weft__ring_submit(&ring), 1);
    while (weft__ring_reap(&ring, &done, 1) == 0)
        (void)poll(&fd, 1, -1);
    int64_t answer = weft__file_answer(done.result);
    if (answer >= 0) weft__file_take(&req, room);
    free(room);
    return answer;
}

static const char *name_of(const char *what)
{
    static char names[4][96];
    static unsigned turn;
    char *name = names[turn++ % 4];
    snprintf(name, sizeof(names[0]), "%s/%s", dir, what);
    return name;
}

TEST(file_ring_does_what_the_calls_do)
{
    struct stat by_ring;
    struct stat by_call;
    char got[8] = {0};
    begin();
    const char *a = name_of("a");
    const char *b = name_of("b");

    int fd = (int)does((struct weft__file_req){
        .op = WEFT__FILE_OPEN, .path = a, .flags = O_RDWR | O_CREAT, .mode = 0640});
    ASSERT_GE(fd, 0);
    ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ASSERT_EQ(does((struct weft__file_req){
                  .op = WEFT__FILE_WRITE, .fd = fd, .from = "abcdef", .bytes = 6, .offset = 2}),
              6);
    ASSERT_EQ(does((struct weft__file_req){
                  .op = WEFT__FILE_READ, .fd = fd, .into = got, .bytes = 8, .offset = 4}),
              4);
    ASSERT(memcmp(got, "cdef", 4) == 0);
    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_SYNC, .fd = fd}));
    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_SYNC, .fd = fd, .flags = 1}));
    if (weft__ring_probe(&ring, WEFT__RING_OP_FTRUNCATE) == 0)
        ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_TRUNCATE, .fd = fd, .offset = 5}));
    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_STAT, .fd = fd, .into = &by_ring}));
    ASSERT_OK(fstat(fd, &by_call));
    ASSERT_EQ(memcmp(&by_ring, &by_call, sizeof(by_call)), 0);
    weft__fd_close(fd);

    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_RENAME, .path = a, .other = b}));
    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_LINK, .path = b, .other = a}));
    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_UNLINK, .path = b}));
    ASSERT_EQ(does((struct weft__file_req){.op = WEFT__FILE_UNLINK, .path = b}), -ENOENT);
    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_SYMLINK, .path = a, .other = b}));
    ASSERT_OK(
        does((struct weft__file_req){.op = WEFT__FILE_STAT, .path = b, .flags = 1, .into = &by_ring}));
    ASSERT_OK(lstat(b, &by_call));
    ASSERT_EQ(memcmp(&by_ring, &by_call, sizeof(by_call)), 0);
    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_STAT, .path = b, .into = &by_ring}));
    ASSERT(S_ISREG(by_ring.st_mode));
    ASSERT_OK(unlink(a));
    ASSERT_OK(unlink(b));
    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_MKDIR, .path = a, .mode = 0700}));
    ASSERT_EQ(does((struct weft__file_req){.op = WEFT__FILE_UNLINK, .path = a}), -EISDIR);
    ASSERT_OK(does((struct weft__file_req){.op = WEFT__FILE_RMDIR, .path = a}));
    end();
}

TEST(file_ring_is_not_asked_for_what_it_does_otherwise)
{
    struct weft__file_req here = {.op = WEFT__FILE_READ, .offset = WEFT__FILE_HERE};
    struct io_uring_sqe sqe = {0};
    int ends[2];

    ASSERT_EQ(weft__file_opcode(&here), -1);
    here.op = WEFT__FILE_WRITE;
    ASSERT_EQ(weft__file_opcode(&here), -1);
    ASSERT_EQ(weft__file_opcode(&(struct weft__file_req){.op = WEFT__FILE_TRUNCATE, .offset = -1}), -1);
    ASSERT_EQ(weft__file_opcode(&(struct weft__file_req){.op = WEFT__FILE_LOAD}), -1);
    ASSERT_EQ(weft__file_opcode(&(struct weft__file_req){.op = WEFT__FILE_LIST}), -1);
    weft__file_fill(&(struct weft__file_req){.op = WEFT__FILE_OPEN, .path = "/"}, NULL, &sqe);
    ASSERT(sqe.flags & IOSQE_ASYNC); /* or a FIFO opens without its other end */
    ASSERT_OK(pipe2(ends, O_CLOEXEC));
    ASSERT(!weft__file_seeks(ends[0]));
    weft__fd_close(ends[0]);
    weft__fd_close(ends[1]);
}

TEST(file_ring_moves_what_the_calls_move)
{
    struct io_uring_sqe sqe = {0};
    struct weft__file_req req = {.op = WEFT__FILE_WRITE, .bytes = WEFT__FILE_INLINE_BYTES};
    weft__file_fill(&req, NULL, &sqe);
    ASSERT_EQ(sqe.flags, 0);
    req.bytes++;
    weft__file_fill(&req, NULL, &sqe);
    ASSERT_EQ(sqe.flags, IOSQE_ASYNC);
    req.bytes = SIZE_MAX;
    weft__file_fill(&req, NULL, &sqe);
    ASSERT_EQ(sqe.len, 0x7ffff000);
}

TEST(file_ring_takes_a_restart_for_an_interruption)
{
    for (int32_t r = -512; r >= -516; r--)
        ASSERT_EQ(weft__file_answer(r), -EINTR);
    ASSERT_EQ(weft__file_answer(-511), -511);
    ASSERT_EQ(weft__file_answer(-EINTR), -EINTR);
    ASSERT_EQ(weft__file_answer(12), 12);
    ASSERT(weft__file_is_unanswered(-EAGAIN));
    ASSERT(weft__file_is_unanswered(-EOPNOTSUPP));
    ASSERT(!weft__file_is_unanswered(-EINVAL));
    ASSERT(!weft__file_is_unanswered(0));
}
