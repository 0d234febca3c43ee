/* SPDX-License-Identifier: MIT
 *
 * assert - sentences about the program, at three levels.
 *
 *     weft_assert(fact)    on in every build: cheap facts (states, bounds, ownership)
 *     weft_dassert(fact)   on where WEFT_DEBUG is: facts that cost something on a hot path
 *     weft_xassert(fact)   on where WEFT_EXPENSIVE is: facts that walk a structure
 * One fact per assert; never for what a user or the kernel may legally do. A false one prints file, line, fact and what the thread is
 * doing (weft__assert_hook), then aborts; under the model checker it fails the execution instead, with the schedule that led there.
 */
#ifndef WEFT_BASE_ASSERT_H
#define WEFT_BASE_ASSERT_H

#include <stdbool.h>

#if defined(WEFT_MODEL)
#include "model.h"
#define weft__assert_failed(fact, file, line) model_fail_at(fact, file, line)
#else
__attribute__((noreturn, cold)) void weft__assert_failed(const char *fact, const char *file, int line);
#endif

/* Called, if set, before a failed assert aborts; may print what it knows of the running task and worker. Set once, before threads start. */
extern void (*weft__assert_hook)(void);

/* The text is made by the outer macros: made here, the constants in it would be expanded, and the message would speak of numbers. */
#define weft__assert_on(fact, text) (__builtin_expect(!(fact), 0) ? weft__assert_failed(text, __FILE__, __LINE__) : (void)0)
#define weft__assert_off(fact)      ((void)sizeof((fact) ? 1 : 0))

#define weft_assert(fact) weft__assert_on(fact, #fact)

#if defined(WEFT_DEBUG)
#define weft_dassert(fact) weft__assert_on(fact, #fact)
#else
#define weft_dassert(fact) weft__assert_off(fact)
#endif

#if defined(WEFT_EXPENSIVE)
#define weft_xassert(fact) weft__assert_on(fact, #fact)
#else
#define weft_xassert(fact) weft__assert_off(fact)
#endif

#endif
