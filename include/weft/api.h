/* SPDX-License-Identifier: MIT
 *
 * api - what the headers need of the compiler.
 */
#ifndef WEFT_API_H
#define WEFT_API_H

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#error "weft needs gcc 12 or clang 16, or newer: its headers use GNU extensions"
#endif

/* Where a call stands, "file.c:12": for messages about mistakes that are noticed elsewhere. */
#define WEFT__CALLER         __FILE__ WEFT__CALLER_LINE(__LINE__)
#define WEFT__CALLER_LINE(n) WEFT__CALLER_TEXT(n)
#define WEFT__CALLER_TEXT(n) ":" #n

#endif
