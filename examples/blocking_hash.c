/* SPDX-License-Identifier: MIT
 *
 * blocking_hash - hashes files side by side: reading blocks, so each file is read on the blocking pool.
 *
 *     blocking_hash [FILE...]          without files: three that it writes itself
 *
 * One task asks for each file. It waits, the worker does not: meanwhile this program counts how often
 * it could have done something else. Files of a slow disk could have a lane of their own (here: two
 * at a time), so that they hold up nobody who asks for something quick.
 */
#include <weft/weft.h>

#include <inttypes.h>
#include <stdio.h>

struct hashed {
    const char *path;
    uint64_t sum;
};

/* FNV-1a. An ordinary function that blocks as it likes. */
static int hash_file(struct hashed *h)
{
    unsigned char buf[4096];
    FILE *file = fopen(h->path, "rb");
    size_t n;

    if (!file) return -ENOENT;
    h->sum = UINT64_C(0xcbf29ce484222325);
    do {
        n = fread(buf, 1, sizeof buf, file);
        for (size_t i = 0; i < n; i++)
            h->sum = (h->sum ^ buf[i]) * UINT64_C(0x100000001b3);
    } while (n == sizeof buf);
    int r = ferror(file) ? -EIO : 0;
    fclose(file);
    return r;
}

static int hash_one(struct hashed *h, weft_lane *disk)
{
    int r = weft_blocking_as((.lane = disk), hash_file, h); /* *h is borrowed: this waits in any case */
    if (r == 0) printf("%016" PRIx64 "  %s\n", h->sum, h->path);
    if (r < 0) fprintf(stderr, "%s: cannot be read\n", h->path);
    return r;
}

static int hash_all(struct hashed *files, int count, weft_lane *disk)
{
    weft_task *tasks[64];
    int failed = 0;
    long idle = 0;

    for (int i = 0; i < count; i++)
        tasks[i] = weft_go(hash_one, &files[i], disk);
    for (int i = 0; i < count; i++) {
        int r = -ECANCELED;
        while (tasks[i] && !weft_done(tasks[i]) && weft_yield() == 0)
            idle++;
        if (weft_join(tasks[i], &r) < 0 || r < 0) failed++;
    }
    printf("%d files, %d failed\n", count, failed);
    fprintf(stderr, "turns of this task meanwhile: %ld\n", idle);
    return failed ? 1 : 0;
}

static int write_file(const char *path, char fill, int count)
{
    FILE *file = fopen(path, "wb");
    if (!file) return -EACCES;
    for (int i = 0; i < count; i++)
        fputc(fill, file);
    return fclose(file) == 0 ? 0 : -EIO;
}

static int app(int argc, char **argv)
{
    static const char *const own[] = {"blocking_hash.a", "blocking_hash.b", "blocking_hash.c"};
    struct hashed files[64];
    int count = argc - 1;
    weft_lane *disk;
    int r = weft_lane_new(NULL, "disk", 2, &disk);
    if (r < 0) return r;

    if (count > 64) count = 64;
    for (int i = 0; i < count; i++)
        files[i].path = argv[i + 1];
    if (count == 0) {
        for (; count < 3; count++) {
            files[count].path = own[count];
            r = weft_blocking(write_file, own[count], (char)('a' + count), 100000);
            if (r < 0) return r;
        }
    }
    r = hash_all(files, count, disk);
    if (argc == 1)
        for (int i = 0; i < 3; i++)
            (void)remove(own[i]);
    weft_lane_free(disk);
    return r;
}

WEFT_MAIN(app)
