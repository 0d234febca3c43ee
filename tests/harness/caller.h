/* SPDX-License-Identifier: MIT
 *
 * caller - is the place that a line names behind "called from " in the function that made the call?
 *
 *     CALLER static int helper(void) { return weft_join(task, &got); }
 *     ASSERT(caller_is_told(d.said));
 * Such functions have a section to themselves, whose ends the linker knows: wherever compilers put functions, these bounds are exact.
 */
#ifndef WEFT_TESTS_CALLER_H
#define WEFT_TESTS_CALLER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLER __attribute__((noinline, section("weft_test_caller")))
extern const char __start_weft_test_caller[];
extern const char __stop_weft_test_caller[];

/* One word, or none: what stands in front of the parenthesis is a function's name. */
static inline bool caller_is_a_symbol(const char *from, const char *to)
{
    if (from == to) return true;
    return to - from > 1 && memchr(from, ' ', (size_t)(to - from)) == to - 1;
}

/* Of "called from symbol (/path/of/this/program+0x1234): refused", with a symbol or without, the address that this was in the process that said it, which is a
 * child of this one; 0 if there is no such thing. */
static inline uintptr_t caller_address(const char *said)
{
    static const char before[] = "called from ";
    static const char behind[] = "): refused with EDEADLK, ";
    char program[4200];
    char *end;
    Dl_info info;
    const char *symbol = strstr(said, before);

    if (!symbol || !dladdr(__start_weft_test_caller, &info)) return 0;
    symbol += strlen(before);
    (void)snprintf(program, sizeof(program), "(%s+0x", info.dli_fname);
    const char *place = strstr(symbol, program);
    if (!place || !caller_is_a_symbol(symbol, place)) return 0;
    uintptr_t offset = strtoul(place + strlen(program), &end, 16);
    if (strncmp(end, behind, strlen(behind)) != 0) return 0;
    return (uintptr_t)info.dli_fbase + offset;
}

/* The call returns into the function that made it, behind its first instruction. */
static inline bool caller_is_told(const char *said)
{
    uintptr_t address = caller_address(said);
    return address > (uintptr_t)__start_weft_test_caller &&
           address < (uintptr_t)__stop_weft_test_caller;
}

#endif
