/* SPDX-License-Identifier: MIT
 *
 * slurp - a small text file as a whole: what /proc and /sys have to say.
 */
#ifndef WEFT_SYS_SLURP_H
#define WEFT_SYS_SLURP_H

/* Read all of `path`, relative to the directory `dir` (or AT_FDCWD).
 * Gives: *into, the text with a NUL behind it, for weft__free.
 * Blocks: for as long as the file system does; meant for /proc, /sys and their like. Threads:
 * any.
 * Returns 0; -ENOMEM; -EFBIG above WEFT__SLURP_BYTES_MAX; what open or read answered. Signals
 * are borne: it goes on reading. */
int weft__slurp(int dir, const char *path, char **into);

#endif
