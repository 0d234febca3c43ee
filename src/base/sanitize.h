/* SPDX-License-Identifier: MIT
 *
 * sanitize - which sanitizers this is compiled for: WEFT__ASAN, WEFT__TSAN, WEFT__MSAN are defined, or not.
 *
 * gcc defines macros of its own, clang answers __has_feature.
 */
#ifndef WEFT_BASE_SANITIZE_H
#define WEFT_BASE_SANITIZE_H

#if defined(__SANITIZE_ADDRESS__)
#define WEFT__ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFT__TSAN 1
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(WEFT__ASAN)
#define WEFT__ASAN 1
#endif
#if __has_feature(thread_sanitizer) && !defined(WEFT__TSAN)
#define WEFT__TSAN 1
#endif
#if __has_feature(memory_sanitizer)
#define WEFT__MSAN 1
#endif
#endif

#endif
