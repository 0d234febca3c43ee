/* SPDX-License-Identifier: MIT
 *
 * tail - print a file, and go on as it grows; also when it is truncated, rotated away, deleted or not there yet.
 *
 *     ./tail /var/log/syslog
 *
 * inotify tells that something has happened in the file's directory: a descriptor like any other, which weft_fd waits for. What has happened it
 * does not need to tell: behind each word the file is looked at, and what is new is printed. As it is listened to before the first
 * look, nothing is missed. The file that is open is read to its end before the one that has taken its name.
 */
#include <weft/weft.h>

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

struct follower {
    const char *path;
    weft_file *file; /* NULL: it is not there */
    int64_t offset;
};

/* Print what is behind the offset. Returns 0 at the end, or an errno. */
static int print_new(struct follower *f)
{
    char buffer[16384];
    ssize_t n;
    while ((n = weft_file_read(f->file, buffer, sizeof buffer, f->offset)) > 0) {
        (void)fwrite(buffer, 1, (size_t)n, stdout);
        f->offset += n;
    }
    (void)fflush(stdout);
    return (int)n;
}

/* What is open: did it become shorter? Has its name become another's? */
static int look(struct follower *f, bool *replaced)
{
    struct stat open_one, named;
    int r = weft_file_stat(f->file, &open_one);
    if (r < 0) return r;
    if (open_one.st_size < f->offset) {
        (void)fprintf(stderr, "tail: %s was truncated\n", f->path);
        f->offset = 0;
    }
    r = weft_fs_stat(f->path, false, &named);
    *replaced = r == 0 && (named.st_ino != open_one.st_ino || named.st_dev != open_one.st_dev);
    return r == -ENOENT ? 0 : r; /* it may come again, and the old one may grow till then */
}

/* Print all that is there. */
static int catch_up(struct follower *f)
{
    for (;;) {
        bool replaced = false;
        int r = f->file ? 0 : weft_file_open(f->path, O_RDONLY, 0, &f->file);
        if (r < 0) return r == -ENOENT ? 0 : r;
        if ((r = look(f, &replaced)) < 0 || (r = print_new(f)) < 0) return r;
        if (!replaced) return 0;
        (void)fprintf(stderr, "tail: %s is another file now\n", f->path);
        weft_file_close(f->file);
        f->file = NULL;
        f->offset = 0;
    }
}

/* For weft_fd_try: take what it has to tell. */
static ssize_t take_events(int fd, void *unused)
{
    char events[4096];
    (void)unused;
    ssize_t n = read(fd, events, sizeof events);
    return n < 0 ? -errno : n;
}

static int watch_directory(const char *path, weft_fd **into)
{
    char *copy = strdup(path); /* dirname writes to it */
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    int r = !copy ? -ENOMEM : fd < 0 ? -errno : 0;
    if (r == 0 && inotify_add_watch(fd, dirname(copy), IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
        r = -errno;
    if (r == 0) r = weft_fd_open(fd, into); /* takes it */
    if (r < 0 && fd >= 0) close(fd);
    free(copy);
    return r;
}

static int app(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    struct follower f = {.path = argv[1]};
    weft_fd *news = NULL;
    ssize_t r = watch_directory(f.path, &news);
    if (r < 0) return (int)r;
    do {
        r = catch_up(&f);
    } while (r == 0 && (r = weft_fd_try(news, WEFT_FD_READ, take_events, NULL)) > 0);
    weft_file_close(f.file);
    weft_close(news);
    return r == -ECANCELED ? 0 : (int)r; /* ^C is how it ends */
}

WEFT_MAIN(app)
