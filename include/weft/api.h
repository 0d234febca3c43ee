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

#endif
