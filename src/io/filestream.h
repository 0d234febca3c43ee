/* SPDX-License-Identifier: MIT
 *
 * filestream - a stream over an open file (weft/file.h), at the place where the file stands.
 *
 * The kernel has no readiness for a file. So an operation on the stream is one on the file, piece by piece; it lies in the stream, as it has no room in
 * struct weft_io, one for each direction, with a seat each.
 * LIFE  The memory goes with the last of the stream and its operations under way. A close does not reach those: a file's operation ends by itself, and answers
 * what happened. What would begin behind the close, also as the next piece of an operation, is answered -EBADF.
 * Threads: any. Pairs: [filestream-ref].
 */
#ifndef WEFT_IO_FILESTREAM_H
#define WEFT_IO_FILESTREAM_H

#include <weft/file.h>
#include <weft/stream.h>

enum weft__filestream_way {
    WEFT__FILESTREAM_BOTH,
    WEFT__FILESTREAM_READER,
    WEFT__FILESTREAM_WRITER
};

/* A stream of a descriptor. Takes fd if it succeeds. What it has no way for is answered -EBADF. Returns 0; -EBADF; -ENOMEM. */
int weft__filestream_of_fd(int fd, enum weft__filestream_way way, weft_stream **into);

#endif
