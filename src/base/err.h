/* SPDX-License-Identifier: MIT
 *
 * err - errors by name: -ECANCELED is "ECANCELED", "cancelled".
 *
 * Takes both signs: the library carries negative errnos, the kernel's tables positive ones. The
 * words are the library's own and the same everywhere. Threads: any, also in a signal handler; all
 * text is constant, and weft__err_format writes into the caller's buffer.
 * Rejected: strerror (follows the locale and may share a buffer), strerrorname_np (one libc only).
 */
#ifndef WEFT_BASE_ERR_H
#define WEFT_BASE_ERR_H

#include <stddef.h>

/* Room for any answer of weft__err_format. */
#define WEFT__ERR_TEXT_BYTES 80

/* "ECANCELED" for ECANCELED and -ECANCELED, "OK" for 0, "E?" for a number that Linux does not
 * know. */
const char *weft__err_name(int error);

/* A few words for a person: "cancelled"; "unknown error" where weft__err_name says "E?". */
const char *weft__err_text(int error);

/* "ECANCELED: cancelled", or "E?4711: unknown error", into the caller's buffer; cut to fit,
 * always terminated. Gives `into`. */
char *weft__err_format(int error, char *into, size_t bytes);

#endif
