/* SPDX-License-Identifier: MIT
 *
 * Operations that are called everywhere, awaited: one stackless task for each family goes through those that no other test awaits. What they do is tested where they are called;
 * here their frames are made, suspended and answered as the poll protocol has it.
 */
#include "town.h"

#include <sys/stat.h>

/* ---- files ---- */

struct by_name {
    WEFT_FRAME(int);
    char dir[64], x[80], y[80], z[80]; /* names */
    char text[64];
    struct stat about;
    weft_file *file;
    union {
        struct weft_fs_mkdir mkdir;
        struct weft_fs_rmdir rmdir;
        struct weft_fs_chmod chmod;
        struct weft_fs_link link;
        struct weft_fs_symlink symlink;
        struct weft_fs_readlink readlink;
        struct weft_fs_stat stat;
        struct weft_fs_store store;
        struct weft_fs_unlink unlink;
        struct weft_file_temp temp;
    } op;
};

static void names_make(struct by_name *f)
{
    bool memory = access("/dev/shm", W_OK) == 0; /* which is faster to sync */
    const char *root = memory ? "/dev/shm" : "/tmp";
    static _Atomic int number; /* relaxed: names that differ */
    (void)snprintf(f->dir, sizeof f->dir, "%s/weft-awaited-%d-%d", root, (int)getpid(),
                   fetch_add_relaxed(&number, 1));
    (void)snprintf(f->x, sizeof f->x, "%s/x", f->dir);
    (void)snprintf(f->y, sizeof f->y, "%s/y", f->dir);
    (void)snprintf(f->z, sizeof f->z, "%s/z", f->dir);
}

static weft_async(by_name)
{
    weft_begin;
    names_make(f);
    weft_await(f->op.mkdir, weft_fs_mkdir, f->dir, 0755);
    ASSERT_OK(f->op.mkdir.ret);
    weft_await(f->op.mkdir, weft_fs_mkdir, f->dir, 0755);
    ASSERT_EQ(f->op.mkdir.ret, -EEXIST);
    weft_await(f->op.store, weft_fs_store, f->x, "hi", 2, 0600, false);
    ASSERT_OK(f->op.store.ret);
    weft_await(f->op.chmod, weft_fs_chmod, f->x, 0640);
    ASSERT_OK(f->op.chmod.ret);
    weft_await(f->op.link, weft_fs_link, f->x, f->y);
    ASSERT_OK(f->op.link.ret);
    weft_await(f->op.symlink, weft_fs_symlink, "x", f->z);
    ASSERT_OK(f->op.symlink.ret);
    weft_await(f->op.readlink, weft_fs_readlink, f->z, f->text, sizeof f->text);
    ASSERT_EQ(f->op.readlink.ret, 1);
    ASSERT_STR(f->text, "x");
    weft_await(f->op.stat, weft_fs_stat, f->z, true, &f->about);
    ASSERT_OK(f->op.stat.ret);
    ASSERT(S_ISLNK(f->about.st_mode));
    weft_await(f->op.stat, weft_fs_stat, f->z, false, &f->about);
    ASSERT_OK(f->op.stat.ret);
    ASSERT_EQ(f->about.st_mode, S_IFREG | 0640);
    ASSERT_EQ(f->about.st_nlink, 2);
    weft_await(f->op.rmdir, weft_fs_rmdir, f->dir);
    ASSERT_EQ(f->op.rmdir.ret, -ENOTEMPTY);
    weft_await(f->op.unlink, weft_fs_unlink, f->x);
    weft_await(f->op.unlink, weft_fs_unlink, f->y);
    weft_await(f->op.unlink, weft_fs_unlink, f->z);
    ASSERT_OK(f->op.unlink.ret);
    weft_await(f->op.temp, weft_file_temp, f->dir, &f->file);
    ASSERT_OK(f->op.temp.ret);
    weft_file_close(f->file);
    weft_await(f->op.rmdir, weft_fs_rmdir, f->dir);
    weft_return(f->op.rmdir.ret);
    weft_end;
}

/* ---- datagrams and packets ---- */

struct by_message {
    WEFT_FRAME(int);
    int number;
    char a_name[48], b_name[48];
    char text[WEFT_ADDR_TEXT];
    weft_dgram *a, *b;
    weft_listener *listener;
    weft_addr from;
    int mine[2];
    weft_fds fds;
    union {
        struct weft_dgram_send send;
        struct weft_dgram_recv_from recv_from;
        struct weft_dgram_send_fds send_fds;
        struct weft_dgram_recv_fds recv_fds;
        struct weft_packet_connect connect;
        struct weft_packet_accept accept;
    } op;
};
static weft_async(by_message)
{
    weft_begin;
    (void)snprintf(f->a_name, sizeof f->a_name, "@weft-awaited-a-%d-%d", (int)getpid(), f->number);
    (void)snprintf(f->b_name, sizeof f->b_name, "@weft-awaited-b-%d-%d", (int)getpid(), f->number);
    ASSERT_OK(weft_dgram_bind(f->a_name, &f->a));
    ASSERT_OK(weft_dgram_bind(f->b_name, &f->b));
    ASSERT_OK(weft_dgram_connect(f->a, f->b_name));
    weft_await(f->op.send, weft_dgram_send, f->a, "abc", 3);
    ASSERT_EQ(f->op.send.ret, 3);
    weft_await(f->op.recv_from, weft_dgram_recv_from, f->b, f->text, 8, &f->from);
    ASSERT_EQ(f->op.recv_from.ret, 3);
    (void)weft_addr_print(&f->from, f->text, sizeof f->text);
    ASSERT_STR(f->text, f->a_name);

    f->mine[0] = weft_dgram_fd(f->b);
    weft_await(f->op.send_fds, weft_dgram_send_fds, f->a, "abcd", 4, f->mine, 1);
    ASSERT_EQ(f->op.send_fds.ret, 4);
    f->fds = (weft_fds){.fd = f->mine, .room = 2};
    weft_await(f->op.recv_fds, weft_dgram_recv_fds, f->b, f->text, 8, &f->fds);
    ASSERT_EQ(f->op.recv_fds.ret, 4);
    ASSERT_EQ(f->fds.count, 1);
    ASSERT_OK(close(f->mine[0]));
    weft_close(f->a);
    weft_close(f->b);

    ASSERT_OK(weft_packet_listen(f->a_name, &f->listener));
    weft_await(f->op.connect, weft_packet_connect, f->a_name, &f->a);
    ASSERT_OK(f->op.connect.ret);
    weft_await(f->op.accept, weft_packet_accept, f->listener, &f->b);
    ASSERT_OK(f->op.accept.ret);
    weft_close(f->listener);
    weft_close(f->a);
    weft_await(f->op.recv_from, weft_dgram_recv_from, f->b, f->text, 8, &f->from);
    weft_close(f->b);
    weft_return((int)f->op.recv_from.ret); /* the end */
    weft_end;
}

struct by_udp {
    WEFT_FRAME(int);
    weft_udp *a, *b;
    weft_addr to;
    char text[WEFT_ADDR_TEXT];
    struct weft_udp_send send;
    struct weft_udp_recv recv;
};
static weft_async(by_udp)
{
    weft_begin;
    ASSERT_OK(weft_udp_bind("127.0.0.1:0", &f->a));
    ASSERT_OK(weft_udp_bind("127.0.0.1:0", &f->b));
    ASSERT_OK(weft_udp_local(f->b, &f->to));
    (void)weft_addr_print(&f->to, f->text, sizeof f->text);
    ASSERT_OK(weft_udp_connect(f->a, f->text));
    weft_await(f->send, weft_udp_send, f->a, "hello", 5);
    ASSERT_EQ(f->send.ret, 5);
    weft_await(f->recv, weft_udp_recv, f->b, f->text, 8);
    ASSERT_EQ(f->recv.ret, 5);
    ASSERT_EQ(memcmp(f->text, "hello", 5), 0);
    weft_close(f->a);
    weft_close(f->b);
    weft_return(0);
    weft_end;
}

/* ---- streams in parts, members ---- */

struct by_parts {
    WEFT_FRAME(int);
    weft_stream *pair[2];
    unsigned char all[4000];
    unsigned char got[4000];
    struct iovec iov[2];
    size_t sent;
    struct weft_writev writev;
    struct weft_writev_all writev_all;
    struct weft_read_exact read;
};
static weft_async(by_parts)
{
    weft_begin;
    town_fill(f->all, sizeof f->all, 0);
    f->iov[0] = (struct iovec){f->all, 10};
    f->iov[1] = (struct iovec){f->all + 10, 90};
    weft_await(f->writev, weft_writev, f->pair[0], f->iov, 2);
    ASSERT_EQ(f->writev.ret, 100);
    weft_await(f->read, weft_read_exact, f->pair[1], f->got, 100);
    town_check(f->got, 100, 0);
    f->iov[0] = (struct iovec){f->all, 1};
    f->iov[1] = (struct iovec){f->all + 1, 899};
    weft_await(f->writev_all, weft_writev_all, f->pair[0], f->iov, 2);
    ASSERT_EQ(f->writev_all.ret, 900);
    weft_await(f->read, weft_read_exact, f->pair[1], f->got, 900);
    town_check(f->got, 900, 0);
    weft_close(f->pair[0]);
    weft_close(f->pair[1]);
    weft_return(0);
    weft_end;
}

static int answers_three(void)
{
    return 3;
}

struct by_member {
    WEFT_FRAME(int);
    weft_set set;
    weft_task *task;
    int got;
    struct weft_set_next next;
    struct weft_join join;
};
static weft_async(by_member)
{
    weft_begin;
    ASSERT_OK(weft_set_try_go(&f->set, answers_three));
    weft_await(f->next, weft_set_next, &f->set, &f->task);
    ASSERT_EQ(f->next.ret, 1);
    weft_await(f->join, weft_join, f->task, &f->got);
    ASSERT_OK(f->join.ret);
    weft_await(f->next, weft_set_next, &f->set, &f->task);
    ASSERT_EQ(f->next.ret, 0); /* nobody is left */
    weft_set_done(&f->set);
    weft_return(f->got == 3 ? 0 : -EIO);
    weft_end;
}

/* ---- all of them, several of each at once ---- */

static void awaits_all(struct crew *crew)
{
    enum { EACH = 3, FAMILIES = 4 + TOWN_KINDS };
    weft_task *task[EACH][FAMILIES];
    (void)crew;
    for (int i = 0; i < EACH; i++) {
        weft_task **t = task[i];
        *t++ = weft_spawn(by_name);
        *t++ = weft_spawn(by_message, .number = i);
        *t++ = weft_spawn(by_udp);
        *t++ = weft_spawn(by_member);
        for (int kind = 0; kind < TOWN_KINDS; kind++) {
            weft_stream *pair[2];
            town_pair((enum town_kind)kind, pair);
            *t++ = weft_spawn(by_parts, .pair = {pair[0], pair[1]});
        }
    }
    for (int i = 0; i < EACH; i++)
        for (int k = 0; k < FAMILIES; k++) {
            int r = 1;
            ASSERT_OK(weft_join(task[i][k], &r));
            ASSERT_OK(r);
        }
}

TEST(awaited_operations_answer_as_called)
{
    crew_each(awaits_all);
}
