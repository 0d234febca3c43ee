/* SPDX-License-Identifier: MIT
 *
 * file - files and directories.
 *
 *     weft_file *log;
 *     if ((r = weft_file_open("log", O_WRONLY | O_CREAT | O_APPEND, 0644, &log)) < 0) return r;
 *     n = weft_file_write(log, line, len, WEFT_FILE_HERE);
 *     weft_file_close(log);
 *     r = weft_fs_load("config", 1 << 20, &text, &len);                       a whole file, by its name
 *     weft_await(f->read, weft_file_read, f->file, f->buf, sizeof(f->buf), f->at);   stackless; then f->read.ret
 *
 * Disks do not say when they are ready; so what may block is done elsewhere, and the task that asked waits: by the kernel itself (io_uring), where it can
 * and may, else by a thread of the blocking pool (docs/DRIVER.md; weft_rt_files says which). What is in memory already is read on the spot. For sockets, pipes and terminals: weft/fd.h.
 *
 * All of them: from fibers and plain threads as a call, awaited in stackless tasks. Names and buffers are borrowed until it is
 * over. Errors are those of the system call, negative; and -ECANCELED, -ETIME: it was given up in time, and nothing
 * happened. One that has begun is waited for, and answers what happened, except where it says "given up at once". What waits for somebody else (a FIFO that is opened, a pipe or
 * terminal that is read or written) has not begun, and is given up; it keeps a thread meanwhile, or one of the kernel's: weft_fifo_open and weft_stream_of_fd keep none.
 * -EINVAL for NULL; -EAGAIN, -ENOMEM, -ESHUTDOWN, -ECHILD as weft_blocking;
 * -EDEADLK in a stackless poll (call form). A plain thread needs no runtime.
 */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

#include <weft/task.h>

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- open files ------------------------------------------------------------------------------------------------------ */

/* Any number of tasks may read and write one at the same time. */
typedef struct weft_file weft_file;

/* What each operation keeps while it is under way. */
struct weft__fs_op {
    void *weft__[44];
};

/* Gives a file, for weft_file_close. `flags` are those of open(2), close-on-exec in any case; `mode` is for one that is made. Given up at once: a file
 * that is opened all the same is closed. Returns 0 or an error as above. */
WEFT_API int weft__file_open(const char *path, int flags, mode_t mode, weft_file **into)
    __attribute__((warn_unused_result));
struct weft_file_open {
    WEFT_FRAME(int);
    const char *path;
    int flags;
    mode_t mode;
    weft_file **into;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_file_open_poll;
#define weft_file_open(path, flags, mode, into)                                                    \
    (WEFT__CALL_FORM("weft_file_open()"), weft__file_open(path, flags, mode, into))

/* Gives a new file without a name, to read and write, in the directory `dir` (NULL: /tmp); it is gone with its last user. As weft_file_open. */
WEFT_API int weft__file_temp(const char *dir, weft_file **into) __attribute__((warn_unused_result));
struct weft_file_temp {
    WEFT_FRAME(int);
    const char *dir;
    weft_file **into;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_file_temp_poll;
#define weft_file_temp(dir, into) (WEFT__CALL_FORM("weft_file_temp()"), weft__file_temp(dir, into))

/* Takes `fd`, and gives a file of it. Context: anywhere. Returns 0; -EBADF below 0; -ENOMEM: the fd is still yours. */
WEFT_API int weft_file_of(int fd, weft_file **into) __attribute__((warn_unused_result));

/* Takes the file. Operations under way go on, and the fd goes with the last of them. Never waits, never fails: an error of a write that shows so late is told
 * by weft_file_sync before. Context: anywhere. NULL is fine. */
WEFT_API void weft_file_close(weft_file *file);

/* Its fd, borrowed. */
WEFT_API int weft_file_fd(const weft_file *file);

/* As an offset: where the file stands, which moves on; one task at a time, or nobody knows in which order. */
#define WEFT_FILE_HERE (-1)

/* The file as a stream (stream.h), for buffers and lines, codecs and copies. It reads and writes at WEFT_FILE_HERE; a way that the file was not opened for is -EBADF, weft_shutdown
 * -EOPNOTSUPP, and a read of nothing more is the end: who writes behind it can be read then. One reads and one writes at a time, else -EBUSY; given up, they
 * have done nothing, as of any stream. weft_close lets the file go, too. It may be called while others use it: what they have begun is done, and what would follow
 * answers -EBADF. Takes the file if it succeeds. For a FIFO or terminal: weft_stream_of_fd, which keeps no thread waiting. Context: anywhere.
 * Returns 0; -ENOMEM; -EINVAL: NULL. */
typedef struct weft_stream weft_stream;
WEFT_API int weft_stream_of_file(weft_file *file, weft_stream **into)
    __attribute__((warn_unused_result));

/* Read up to `bytes` at `offset`. Returns how many, perhaps fewer; 0 at the end of the file. */
WEFT_API ssize_t weft__file_read(weft_file *file, void *into, size_t bytes, int64_t offset)
    __attribute__((warn_unused_result));
struct weft_file_read {
    WEFT_FRAME(ssize_t);
    weft_file *file;
    void *into;
    size_t bytes;
    int64_t offset;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_file_read_poll;
#define weft_file_read(file, into, bytes, offset)                                                  \
    (WEFT__CALL_FORM("weft_file_read()"), weft__file_read(file, into, bytes, offset))

/* Write up to `bytes` at `offset`. Returns how many, perhaps fewer. */
WEFT_API ssize_t weft__file_write(weft_file *file, const void *from, size_t bytes, int64_t offset)
    __attribute__((warn_unused_result));
struct weft_file_write {
    WEFT_FRAME(ssize_t);
    weft_file *file;
    const void *from;
    size_t bytes;
    int64_t offset;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_file_write_poll;
#define weft_file_write(file, from, bytes, offset)                                                 \
    (WEFT__CALL_FORM("weft_file_write()"), weft__file_write(file, from, bytes, offset))

/* Have it on the disk: fsync(2), or with `data_only` fdatasync(2). Returns 0 or an error. */
WEFT_API int weft__file_sync(weft_file *file, bool data_only);
struct weft_file_sync {
    WEFT_FRAME(int);
    weft_file *file;
    bool data_only;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_file_sync_poll;
#define weft_file_sync(file, data_only)                                                            \
    (WEFT__CALL_FORM("weft_file_sync()"), weft__file_sync(file, data_only))

/* Make it `bytes` long. Returns 0 or an error. */
WEFT_API int weft__file_truncate(weft_file *file, int64_t bytes) __attribute__((warn_unused_result));
struct weft_file_truncate {
    WEFT_FRAME(int);
    weft_file *file;
    int64_t bytes;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_file_truncate_poll;
#define weft_file_truncate(file, bytes)                                                            \
    (WEFT__CALL_FORM("weft_file_truncate()"), weft__file_truncate(file, bytes))

/* What there is to know about it. Returns 0 or an error. */
WEFT_API int weft__file_stat(weft_file *file, struct stat *into) __attribute__((warn_unused_result));
struct weft_file_stat {
    WEFT_FRAME(int);
    weft_file *file;
    struct stat *into;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_file_stat_poll;
#define weft_file_stat(file, into)                                                                 \
    (WEFT__CALL_FORM("weft_file_stat()"), weft__file_stat(file, into))

/* ---- by name ----------------------------------------------------------------------------------------------------------- */

/* A whole file, with a NUL behind it, for weft_free. `most`: with more bytes it is -EFBIG. Stops between two pieces of a megabyte. Returns 0 or an error. */
WEFT_API int weft__fs_load(const char *path, size_t most, char **into, size_t *bytes)
    __attribute__((warn_unused_result));
struct weft_fs_load {
    WEFT_FRAME(int);
    const char *path;
    size_t most;
    char **into;
    size_t *bytes; /* NULL: not asked for */
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_load_poll;
#define weft_fs_load(path, most, into, bytes)                                                      \
    (WEFT__CALL_FORM("weft_fs_load()"), weft__fs_load(path, most, into, bytes))

/* Write a whole file. With `whole` it is written beside, brought to the disk, and put in its place, with exactly that mode: who reads meanwhile, and who reads
 * after a crash, finds the old one or the new one. Stops between two pieces: then the old one is still there, or without
 * `whole` part of the new one. Returns 0 or an error. */
WEFT_API int weft__fs_store(const char *path, const void *from, size_t bytes, mode_t mode, bool whole)
    __attribute__((warn_unused_result));
struct weft_fs_store {
    WEFT_FRAME(int);
    const char *path;
    const void *from;
    size_t bytes;
    mode_t mode;
    bool whole;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_store_poll;
#define weft_fs_store(path, from, bytes, mode, whole)                                              \
    (WEFT__CALL_FORM("weft_fs_store()"), weft__fs_store(path, from, bytes, mode, whole))

/* Copy a file, with its mode. Stops between two pieces; stopped or failed on the way, there is no `to`, unless that is no plain file (a device, a FIFO), which stays. Returns how many
 * bytes; -EINVAL: both are one file, which stays as it is; -EISDIR: of a directory. */
WEFT_API int64_t weft__fs_copy(const char *from, const char *to) __attribute__((warn_unused_result));
struct weft_fs_copy {
    WEFT_FRAME(int64_t);
    const char *from;
    const char *to;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_copy_poll;
#define weft_fs_copy(from, to) (WEFT__CALL_FORM("weft_fs_copy()"), weft__fs_copy(from, to))

/* What there is to know about a name; of a link: about what it points to, unless `link_itself`. */
WEFT_API int weft__fs_stat(const char *path, bool link_itself, struct stat *into)
    __attribute__((warn_unused_result));
struct weft_fs_stat {
    WEFT_FRAME(int);
    const char *path;
    bool link_itself;
    struct stat *into;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_stat_poll;
#define weft_fs_stat(path, link_itself, into)                                                      \
    (WEFT__CALL_FORM("weft_fs_stat()"), weft__fs_stat(path, link_itself, into))

/* What a link points to, with a NUL. Returns how long it is; -ERANGE: `bytes` are too few. */
WEFT_API ssize_t weft__fs_readlink(const char *path, char *into, size_t bytes)
    __attribute__((warn_unused_result));
struct weft_fs_readlink {
    WEFT_FRAME(ssize_t);
    const char *path;
    char *into;
    size_t bytes;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_readlink_poll;
#define weft_fs_readlink(path, into, bytes)                                                        \
    (WEFT__CALL_FORM("weft_fs_readlink()"), weft__fs_readlink(path, into, bytes))

/* As the system calls of these names. Return 0 or an error. */
WEFT_API int weft__fs_unlink(const char *path);
struct weft_fs_unlink {
    WEFT_FRAME(int);
    const char *path;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_unlink_poll;
#define weft_fs_unlink(path) (WEFT__CALL_FORM("weft_fs_unlink()"), weft__fs_unlink(path))

WEFT_API int weft__fs_rmdir(const char *path);
struct weft_fs_rmdir {
    WEFT_FRAME(int);
    const char *path;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_rmdir_poll;
#define weft_fs_rmdir(path) (WEFT__CALL_FORM("weft_fs_rmdir()"), weft__fs_rmdir(path))

WEFT_API int weft__fs_mkdir(const char *path, mode_t mode);
struct weft_fs_mkdir {
    WEFT_FRAME(int);
    const char *path;
    mode_t mode;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_mkdir_poll;
#define weft_fs_mkdir(path, mode) (WEFT__CALL_FORM("weft_fs_mkdir()"), weft__fs_mkdir(path, mode))

WEFT_API int weft__fs_chmod(const char *path, mode_t mode);
struct weft_fs_chmod {
    WEFT_FRAME(int);
    const char *path;
    mode_t mode;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_chmod_poll;
#define weft_fs_chmod(path, mode) (WEFT__CALL_FORM("weft_fs_chmod()"), weft__fs_chmod(path, mode))

WEFT_API int weft__fs_rename(const char *path, const char *to);
struct weft_fs_rename {
    WEFT_FRAME(int);
    const char *path;
    const char *to;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_rename_poll;
#define weft_fs_rename(path, to) (WEFT__CALL_FORM("weft_fs_rename()"), weft__fs_rename(path, to))

WEFT_API int weft__fs_link(const char *path, const char *to);
struct weft_fs_link {
    WEFT_FRAME(int);
    const char *path;
    const char *to;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_link_poll;
#define weft_fs_link(path, to) (WEFT__CALL_FORM("weft_fs_link()"), weft__fs_link(path, to))

WEFT_API int weft__fs_symlink(const char *path, const char *to);
struct weft_fs_symlink {
    WEFT_FRAME(int);
    const char *path;
    const char *to;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_fs_symlink_poll;
#define weft_fs_symlink(path, to) (WEFT__CALL_FORM("weft_fs_symlink()"), weft__fs_symlink(path, to))

/* ---- directories --------------------------------------------------------------------------------------------------------- */

/* One task at a time. */
typedef struct weft_dir weft_dir;

typedef struct weft_dirent {
    const char *name; /* borrowed until the next one is asked for */
    uint64_t inode;
    unsigned char type; /* DT_REG, DT_DIR, ... of dirent.h; DT_UNKNOWN: the filesystem does not say */
} weft_dirent;

/* Gives a directory, for weft_dir_close. As weft_file_open. */
WEFT_API int weft__dir_open(const char *path, weft_dir **into) __attribute__((warn_unused_result));
struct weft_dir_open {
    WEFT_FRAME(int);
    const char *path;
    weft_dir **into;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_dir_open_poll;
#define weft_dir_open(path, into) (WEFT__CALL_FORM("weft_dir_open()"), weft__dir_open(path, into))

/* The next entry, without "." and "..". Returns 1, 0 at the end, or an error. */
WEFT_API int weft__dir_next(weft_dir *dir, weft_dirent *into) __attribute__((warn_unused_result));
struct weft_dir_next {
    WEFT_FRAME(int);
    weft_dir *dir;
    weft_dirent *into;
    struct weft__fs_op weft__op WEFT__ZERO;
};
WEFT_API weft_pollfn weft_dir_next_poll;
#define weft_dir_next(dir, into) (WEFT__CALL_FORM("weft_dir_next()"), weft__dir_next(dir, into))

/* Takes the directory. As weft_file_close. */
WEFT_API void weft_dir_close(weft_dir *dir);

#ifdef __cplusplus
}
#endif

#endif
