/* SPDX-License-Identifier: MIT
 *
 * version - which weft this is, at compile time and at run time.
 */
#ifndef WEFT_VERSION_H
#define WEFT_VERSION_H

#include <weft/api.h>

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0
#define WEFT_VERSION_TEXT  "0.1.0"

/* One number that grows with the version: 0x00MMmmpp. */
#define WEFT_VERSION_NUMBER \
    ((WEFT_VERSION_MAJOR << 16) | (WEFT_VERSION_MINOR << 8) | WEFT_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is linked, which may be newer than the headers compiled against.
 * Context: anywhere. Returns a static string such as "0.1.0". */
WEFT_API const char *weft_version(void);

/* The same as a number, to be compared with WEFT_VERSION_NUMBER. */
WEFT_API unsigned weft_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
