/* SPDX-License-Identifier: MIT
 *
 * stdio - standard input, output and error as streams.
 *
 *     weft_stream *in;
 *     r = weft_stdin(&in);
 *     while ((n = weft_read(in, b, sizeof b)) > 0) ...       waits as any stream does: cancelled, timed out, an arm of a select
 *     weft_close(in);                                        descriptor 0 itself stays as it is
 *
 * The program's own descriptors are not touched: they block as before, for this program, and for all others that share the terminal or pipe. Nobody is
 * left behind in a read when the runtime stops.
 *
 * How: terminals and pipes are opened anew (/proc/self/fd/N), where that is allowed, so that the new one need not block; else, and for sockets, each call says that
 * it must not wait (RWF_NOWAIT); plain files are read and written by threads that may block (file.h), at the place where the descriptor stands.
 * Where the system can do none of this (a terminal of another user's), a read or write follows right behind a look that it will not wait; it
 * then does wait if another process was faster.
 *
 * Each call gives a stream of its own; they do not know of each other, nor of what <stdio.h> has buffered. They are not buffered: see buf.h.
 */
#ifndef WEFT_STDIO_H
#define WEFT_STDIO_H

#include <weft/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Give a stream on the current runtime, for weft_close. weft_stdin cannot be written (-EBADF), the others not read. Context: anywhere.
 * Return 0; -EBADF: the descriptor is closed; -EMFILE, -ENFILE, -ENOMEM; -ENXIO: there is no runtime; -ESHUTDOWN; -ECHILD; -EINVAL. */
WEFT_API int weft_stdin(weft_stream **into) __attribute__((warn_unused_result));
WEFT_API int weft_stdout(weft_stream **into) __attribute__((warn_unused_result));
WEFT_API int weft_stderr(weft_stream **into) __attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif

#endif
