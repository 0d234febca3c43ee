/* SPDX-License-Identifier: MIT
 *
 * Operations on files, given up at every moment, by the ring and by the pool: -ECANCELED means that nothing has happened, and any other answer that it has. Each
 * attempt has a desk with names and a file of its own, and looks by plain system calls at what became of them. Descriptors and memory that stay the harness sees.
 */
#include <weft/weft.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

union frames {
    struct weft_file_open open;
    struct weft_file_temp temp;
    struct weft_file_read read;
    struct weft_file_write write;
    struct weft_file_sync sync;
    struct weft_file_truncate truncate;
    struct weft_file_stat stat;
    struct weft_fs_stat fs_stat;
    struct weft_fs_load load;
    struct weft_fs_store store;
    struct weft_fs_copy copy;
    struct weft_fs_readlink readlink;
    struct weft_fs_rename rename;
    struct weft_fs_link link;
    struct weft_fs_symlink symlink;
    struct weft_fs_unlink unlink;
    struct weft_fs_mkdir mkdir;
    struct weft_fs_rmdir rmdir;
    struct weft_fs_chmod chmod;
    struct weft_dir_open dir_open;
    struct weft_dir_next dir_next;
};

#include "give_up.h"

#define BYTES   3000 /* of a desk's file */
#define ENTRIES 10   /* of its directory */

/* As many as there are attempts, so that one is always free. `a` and `file` are there between two attempts, `b` and `c` are not. */
static struct desk {
    char a[100], b[100], c[100], dir[100];
    weft_file *file; /* of `a` */
    weft_dir *reads; /* `dir`, somewhere in the middle */
    int entries;     /* that came out of it */
    int version;     /* of what was changed last */
    char room[BYTES];
    struct stat about;
    weft_dirent entry;
    _Atomic bool taken; /* [desk] */
} desks[LIVE];

static char home[64];

static void world_init(void)
{
}

/* ---- desks ---- */

static void fill(char *into, int version)
{
    for (int i = 0; i < BYTES; i++)
        into[i] = (char)(i * 7 + version);
}

static void file_make(const char *path, weft_file **into)
{
    char all[BYTES];
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    fill(all, 0);
    ASSERT_EQ(write(fd, all, BYTES), BYTES);
    ASSERT_OK(weft_file_of(fd, into));
}

static void entry_path(const struct desk *d, int i, char into[130])
{
    (void)snprintf(into, 130, "%s/%d", d->dir, i);
}

static void dir_fill(struct desk *d)
{
    char path[130];
    ASSERT_OK(mkdir(d->dir, 0700));
    for (int i = 0; i < ENTRIES; i++) {
        entry_path(d, i, path);
        ASSERT_OK(symlink("elsewhere", path));
    }
    ASSERT_OK(weft_dir_open(d->dir, &d->reads));
}

static void desks_open(void)
{
    bool memory = access("/dev/shm", W_OK) == 0; /* which is faster to sync */
    (void)snprintf(home, sizeof home, "%s/weft-desks-XXXXXX", memory ? "/dev/shm" : "/tmp");
    ASSERT(mkdtemp(home));
    for (int i = 0; i < LIVE; i++) {
        struct desk *d = &desks[i];
        memset((void *)d, 0, sizeof *d);
        (void)snprintf(d->a, sizeof d->a, "%s/a%d", home, i);
        (void)snprintf(d->b, sizeof d->b, "%s/b%d", home, i);
        (void)snprintf(d->c, sizeof d->c, "%s/c%d", home, i);
        (void)snprintf(d->dir, sizeof d->dir, "%s/dir%d", home, i);
        file_make(d->a, &d->file);
        dir_fill(d);
    }
}

/* What nobody took out of a directory is still to come. */
static void dir_even(struct desk *d)
{
    char path[130];
    int r;
    while ((r = weft_dir_next(d->reads, &d->entry)) > 0)
        d->entries++;
    ASSERT_OK(r);
    ASSERT_EQ(d->entries, ENTRIES);
    weft_dir_close(d->reads);
    for (int i = 0; i < ENTRIES; i++) {
        entry_path(d, i, path);
        ASSERT_OK(unlink(path));
    }
    ASSERT_OK(rmdir(d->dir));
}

static void desks_close(void)
{
    for (int i = 0; i < LIVE; i++) {
        struct desk *d = &desks[i];
        dir_even(d);
        weft_file_close(d->file);
        ASSERT_OK(unlink(d->a));
    }
    ASSERT_OK(rmdir(home)); /* nothing else was left there */
}

static struct desk *take_desk(struct attempt *a)
{
    bool free = false;
    uint32_t i = pool_random(&a->random, LIVE);
    while (!cas_acquire(&desks[i].taken, &free, true)) { /* [desk] with leaves: as it was left */
        free = false;
        i = (i + 1) % LIVE;
    }
    a->made = &desks[i];
    return &desks[i];
}

static struct desk *desk_of(struct attempt *a)
{
    return a->made;
}

static weft_poll leaves(struct attempt *a)
{
    store_release(&desk_of(a)->taken, false); /* [desk] with take_desk: what is on it */
    return WEFT_READY;
}

/* What happened: done, or nothing. */
static bool is_done(const struct attempt *a)
{
    return a->ret >= 0;
}

static bool is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

static void
feed_patience(uint64_t *random) /* NOLINT(readability-non-const-parameter): one of a table */
{
    (void)random;
    sched_yield();
}

#define OVER(member, fn)                                                                           \
    do {                                                                                           \
        if (fn##_poll(&a->f.member, cx) == WEFT_PENDING) return WEFT_PENDING;                      \
        a->ret = (int)a->f.member.ret;                                                             \
    } while (0)

/* ---- what gives something: it is ours, or there is nothing ---- */

static weft_file *given[LIVE];

static weft_file **given_to(struct attempt *a)
{
    return &given[desk_of(a) - desks];
}

static void open_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.open = (struct weft_file_open){.path = d->a, .flags = O_RDONLY, .into = given_to(a)};
}
static weft_poll open_poll(struct attempt *a, weft_cx *cx)
{
    OVER(open, weft_file_open);
    if (is_done(a)) weft_file_close(*given_to(a));
    return leaves(a);
}

static void temp_begin(struct attempt *a)
{
    (void)take_desk(a);
    a->f.temp = (struct weft_file_temp){.dir = home, .into = given_to(a)};
}
static weft_poll temp_poll(struct attempt *a, weft_cx *cx)
{
    OVER(temp, weft_file_temp);
    if (is_done(a)) weft_file_close(*given_to(a));
    return leaves(a);
}

static weft_dir *given_dir[LIVE];

static void dir_open_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.dir_open = (struct weft_dir_open){.path = d->dir, .into = &given_dir[d - desks]};
}
static weft_poll dir_open_poll(struct attempt *a, weft_cx *cx)
{
    OVER(dir_open, weft_dir_open);
    if (is_done(a)) weft_dir_close(given_dir[desk_of(a) - desks]);
    return leaves(a);
}

static char *given_text[LIVE];

static void load_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.load = (struct weft_fs_load){
        .path = d->a, .most = 2 * BYTES, .into = &given_text[d - desks], .bytes = NULL};
}
static weft_poll load_poll(struct attempt *a, weft_cx *cx)
{
    OVER(load, weft_fs_load);
    if (is_done(a)) {
        char want[BYTES];
        fill(want, 0);
        ASSERT_EQ(memcmp(given_text[desk_of(a) - desks], want, BYTES), 0);
        weft_free(given_text[desk_of(a) - desks]);
    }
    return leaves(a);
}

/* ---- what only looks ---- */

static void read_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    memset(d->room, 0, BYTES);
    a->f.read =
        (struct weft_file_read){.file = d->file, .into = d->room, .bytes = BYTES, .offset = 0};
}
static weft_poll read_poll(struct attempt *a, weft_cx *cx)
{
    OVER(read, weft_file_read);
    if (is_done(a)) {
        char want[BYTES];
        fill(want, 0);
        ASSERT_GE(a->ret, 1);
        ASSERT_EQ(memcmp(desk_of(a)->room, want, (size_t)a->ret), 0);
    }
    return leaves(a);
}

static void stat_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.stat = (struct weft_file_stat){.file = d->file, .into = &d->about};
}
static weft_poll stat_poll(struct attempt *a, weft_cx *cx)
{
    OVER(stat, weft_file_stat);
    if (is_done(a)) ASSERT_EQ(desk_of(a)->about.st_size, BYTES);
    return leaves(a);
}

static void fs_stat_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.fs_stat = (struct weft_fs_stat){.path = d->a, .link_itself = false, .into = &d->about};
}
static weft_poll fs_stat_poll(struct attempt *a, weft_cx *cx)
{
    OVER(fs_stat, weft_fs_stat);
    if (is_done(a)) ASSERT_EQ(desk_of(a)->about.st_size, BYTES);
    return leaves(a);
}

static char link_path[LIVE][130];

static void readlink_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    entry_path(d, 0, link_path[d - desks]);
    a->f.readlink =
        (struct weft_fs_readlink){.path = link_path[d - desks], .into = d->room, .bytes = BYTES};
}
static weft_poll readlink_poll(struct attempt *a, weft_cx *cx)
{
    OVER(readlink, weft_fs_readlink);
    if (is_done(a)) ASSERT_STR(desk_of(a)->room, "elsewhere");
    return leaves(a);
}

/* Who gives up has taken no entry: the others still come, each once. */
static void dir_next_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.dir_next = (struct weft_dir_next){.dir = d->reads, .into = &d->entry};
}
static weft_poll dir_next_poll(struct attempt *a, weft_cx *cx)
{
    OVER(dir_next, weft_dir_next);
    if (a->ret > 0) desk_of(a)->entries++;
    if (a->ret == 0) ASSERT_EQ(desk_of(a)->entries, ENTRIES);
    return leaves(a);
}

/* ---- what changes a file ---- */

static void write_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    fill(d->room, d->version + 1);
    a->f.write =
        (struct weft_file_write){.file = d->file, .from = d->room, .bytes = BYTES, .offset = 0};
}
static weft_poll write_poll(struct attempt *a, weft_cx *cx)
{
    struct desk *d = desk_of(a);
    char want[BYTES];
    char got[BYTES];
    OVER(write, weft_file_write);
    if (is_done(a)) d->version++;
    if (is_done(a)) ASSERT_EQ(a->ret, BYTES);
    fill(want, d->version);
    ASSERT_EQ(pread(weft_file_fd(d->file), got, BYTES, 0), BYTES);
    ASSERT_EQ(memcmp(got, want, BYTES), 0);
    return leaves(a);
}

static void sync_begin(struct attempt *a)
{
    a->f.sync = (struct weft_file_sync){.file = take_desk(a)->file};
}
static weft_poll sync_poll(struct attempt *a, weft_cx *cx)
{
    OVER(sync, weft_file_sync);
    return leaves(a);
}

static void truncate_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.truncate = (struct weft_file_truncate){.file = d->file, .bytes = BYTES + d->version + 1};
}
static weft_poll truncate_poll(struct attempt *a, weft_cx *cx)
{
    struct desk *d = desk_of(a);
    struct stat about;
    OVER(truncate, weft_file_truncate);
    if (is_done(a)) d->version++;
    ASSERT_OK(fstat(weft_file_fd(d->file), &about));
    ASSERT_EQ(about.st_size, BYTES + d->version);
    return leaves(a);
}

static void chmod_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.chmod = (struct weft_fs_chmod){.path = d->a, .mode = d->version % 2 ? 0600 : 0640};
}
static weft_poll chmod_poll(struct attempt *a, weft_cx *cx)
{
    struct desk *d = desk_of(a);
    struct stat about;
    OVER(chmod, weft_fs_chmod);
    if (is_done(a)) d->version++;
    ASSERT_OK(stat(d->a, &about));
    ASSERT_EQ(about.st_mode & 0777, d->version % 2 ? 0640 : 0600);
    return leaves(a);
}

/* ---- what changes names: afterwards all is as it was ---- */

static void rename_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.rename = (struct weft_fs_rename){.path = d->a, .to = d->b};
}
static weft_poll rename_poll(struct attempt *a, weft_cx *cx)
{
    struct desk *d = desk_of(a);
    OVER(rename, weft_fs_rename);
    ASSERT_EQ(is_there(d->a), !is_done(a));
    ASSERT_EQ(is_there(d->b), is_done(a));
    if (is_done(a)) ASSERT_OK(rename(d->b, d->a));
    return leaves(a);
}

/* Whether `b` was made. */
static weft_poll leaves_b(struct attempt *a, int (*undo)(const char *path))
{
    struct desk *d = desk_of(a);
    ASSERT_EQ(is_there(d->b), is_done(a));
    if (is_done(a)) ASSERT_OK(undo(d->b));
    return leaves(a);
}

static void link_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    a->f.link = (struct weft_fs_link){.path = d->a, .to = d->b};
}
static weft_poll link_poll(struct attempt *a, weft_cx *cx)
{
    OVER(link, weft_fs_link);
    return leaves_b(a, unlink);
}

static void symlink_begin(struct attempt *a)
{
    a->f.symlink = (struct weft_fs_symlink){.path = "elsewhere", .to = take_desk(a)->b};
}
static weft_poll symlink_poll(struct attempt *a, weft_cx *cx)
{
    OVER(symlink, weft_fs_symlink);
    return leaves_b(a, unlink);
}

static void mkdir_begin(struct attempt *a)
{
    a->f.mkdir = (struct weft_fs_mkdir){.path = take_desk(a)->b, .mode = 0700};
}
static weft_poll mkdir_poll(struct attempt *a, weft_cx *cx)
{
    OVER(mkdir, weft_fs_mkdir);
    return leaves_b(a, rmdir);
}

static void unlink_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    ASSERT_OK(symlink("elsewhere", d->b));
    a->f.unlink = (struct weft_fs_unlink){.path = d->b};
}
static weft_poll unlink_poll(struct attempt *a, weft_cx *cx)
{
    OVER(unlink, weft_fs_unlink);
    ASSERT_EQ(is_there(desk_of(a)->b), !is_done(a));
    if (!is_done(a)) ASSERT_OK(unlink(desk_of(a)->b));
    return leaves(a);
}

static void rmdir_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    ASSERT_OK(mkdir(d->b, 0700));
    a->f.rmdir = (struct weft_fs_rmdir){.path = d->b};
}
static weft_poll rmdir_poll(struct attempt *a, weft_cx *cx)
{
    OVER(rmdir, weft_fs_rmdir);
    ASSERT_EQ(is_there(desk_of(a)->b), !is_done(a));
    if (!is_done(a)) ASSERT_OK(rmdir(desk_of(a)->b));
    return leaves(a);
}

/* ---- what writes a whole file, in many pieces ---- */

enum { MUCH = (1 << 20) + 5000 }; /* a piece of 1 MiB, and one more */

static char much[MUCH];

static void much_fill(void)
{
    for (int i = 0; i < MUCH; i++)
        much[i] = (char)(i * 31 + i / 4096);
}

static void plain_file(const char *path, const char *text, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, text, bytes), (ssize_t)bytes);
    ASSERT_OK(close(fd));
}

/* How much of it there is; what there is must be the beginning. */
static size_t much_of(const char *path)
{
    static _Thread_local char got[MUCH + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ssize_t n = read(fd, got, sizeof got);
    ASSERT_GE(n, 0);
    ASSERT_LE(n, MUCH);
    ASSERT_OK(close(fd));
    ASSERT_EQ(memcmp(got, much, (size_t)n), 0);
    return (size_t)n;
}

static void store_begin_as(struct attempt *a, bool whole)
{
    struct desk *d = take_desk(a);
    plain_file(d->b, much, 7); /* the old one is shorter */
    a->f.store = (struct weft_fs_store){.path = d->b, .from = much, .bytes = MUCH, .mode = 0600, .whole = whole};
}

static void store_begin(struct attempt *a)
{
    store_begin_as(a, true);
}
/* The old one or the new one; what was written beside it is gone (desks_close looks). */
static weft_poll store_poll(struct attempt *a, weft_cx *cx)
{
    OVER(store, weft_fs_store);
    ASSERT_EQ(much_of(desk_of(a)->b), is_done(a) ? MUCH : 7);
    ASSERT_OK(unlink(desk_of(a)->b));
    return leaves(a);
}

static void store_part_begin(struct attempt *a)
{
    store_begin_as(a, false);
}
static weft_poll store_part_poll(struct attempt *a, weft_cx *cx)
{
    OVER(store, weft_fs_store);
    size_t there = much_of(desk_of(a)->b);
    if (is_done(a)) ASSERT_EQ(there, MUCH);
    ASSERT_OK(unlink(desk_of(a)->b));
    return leaves(a);
}

static void copy_begin(struct attempt *a)
{
    struct desk *d = take_desk(a);
    plain_file(d->c, much, MUCH);
    a->f.copy = (struct weft_fs_copy){.from = d->c, .to = d->b};
}
static weft_poll copy_poll(struct attempt *a, weft_cx *cx)
{
    struct desk *d = desk_of(a);
    OVER(copy, weft_fs_copy);
    ASSERT_EQ(is_there(d->b), is_done(a));
    if (is_done(a)) {
        ASSERT_EQ(a->ret, MUCH);
        ASSERT_EQ(much_of(d->b), MUCH);
        ASSERT_OK(unlink(d->b));
    }
    ASSERT_OK(unlink(d->c));
    return leaves(a);
}

/* ---- all of them ---- */

/* One is over soon, so that few would be told to stop in its midst: each attempt goes on to the next, until it is given up or has had enough. */
enum { ENOUGH = 8 };

#define POLL(op)                                                                                   \
    static weft_poll op##_polls(struct attempt *a, weft_cx *cx)                                    \
    {                                                                                              \
        for (;;) {                                                                                 \
            if (op##_poll(a, cx) == WEFT_PENDING) return WEFT_PENDING;                             \
            if (!is_done(a) || ++a->stage == ENOUGH) return WEFT_READY;                            \
            op##_begin(a);                                                                         \
        }                                                                                          \
    }
/* These take long enough. */
#define POLL_ONCE(op)                                                                              \
    static weft_poll op##_polls(struct attempt *a, weft_cx *cx)                                    \
    {                                                                                              \
        return op##_poll(a, cx);                                                                   \
    }
#define SHAPE(op)                                                                                  \
    {#op, desks_open, op##_begin, op##_polls, nothing, feed_patience, NULL, desks_close},
#define EACH(X)                                                                                    \
    X(open)                                                                                        \
    X(temp) X(dir_open) X(load) X(read) X(stat) X(fs_stat) X(readlink) X(dir_next) X(write)        \
        X(sync) X(truncate) X(chmod) X(rename) X(link) X(symlink) X(mkdir) X(unlink) X(rmdir)
#define EACH_LONG(X) X(store) X(store_part) X(copy)

EACH(POLL)
EACH_LONG(POLL_ONCE)
static const struct shape shapes[] = {EACH(SHAPE) EACH_LONG(SHAPE)};

static void give_up(weft_files_way way)
{
    for (size_t i = 0; i < CREW_SIZES; i++) {
        struct crew crew;
        weft_stats stats;
        weft_rt_opts opts = {.workers = crew_sizes[i], .seed = test_seed() | 1, .files = way};
        crew_start_with(&crew, &opts);
        give_up_rounds(shapes, sizeof shapes / sizeof shapes[0], &crew, 2);
        weft_rt_stats(crew.rt, &stats);
        ASSERT_EQ(stats.file_ring > 0, weft_rt_files(crew.rt) == 0);
        crew_stop(&crew);
    }
}

TEST_WITH(file_operations_given_up_at_every_moment, .timeout_s = 300)
{
    much_fill();
    give_up(WEFT_FILES_AUTO); /* by the ring, where there is one */
    give_up(WEFT_FILES_POOL);
}
