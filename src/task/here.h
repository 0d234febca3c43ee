/* SPDX-License-Identifier: MIT
 *
 * here - this thread's own record, through one opaque door.
 *
 * A compiler may keep the address of a thread-local in a register across a call. A fiber that is suspended in that call goes on on another thread, and would
 * write the first one's record. So the address is computed in a function that the compiler knows nothing about, each time it is asked for.
 */
#ifndef WEFT_TASK_HERE_H
#define WEFT_TASK_HERE_H

#include "base/rand.h"
#include "types.h"

#if defined(__clang__)
#define WEFT__OPAQUE __attribute__((noinline))
#else
#define WEFT__OPAQUE __attribute__((noipa))
#endif

extern _Thread_local struct weft__here weft__here_record __attribute__((tls_model("initial-exec")));

#if defined(__x86_64__)
/* In here.c, too. A linker that has the compiler optimise knows of the references that C makes, not of those in assembly: this one brings here.c into
 * the program. */
extern const char weft__here_anchor __attribute__((visibility("hidden")));

/* The same without a call: a volatile asm is neither merged with another one nor moved across a switch, which is one too. */
static inline struct weft__here *weft__here(void)
{
    struct weft__here *here;
    __asm__ volatile("movq weft__here_record@gottpoff(%%rip), %0\n\taddq %%fs:0, %0" : "=r"(here) : "m"(weft__here_anchor) : "cc");
    return here;
}
#else
struct weft__here *weft__here(void);
#endif

/* A place as one bit of 64: two places may have the same. */
static inline uint64_t weft__here_bit(const void *place)
{
    return UINT64_C(1) << (((uint64_t)(uintptr_t)place * UINT64_C(0x9e3779b97f4a7c15)) >> 58);
}

/* A task of this thread has met another thread, at a lock that both use all the time; it counts as so many times. The scheduler judges by it who runs where (sched/theft.h). */
static inline void weft__here_meets(const void *place, uint32_t times)
{
    struct weft__here *here = weft__here();
    here->met += times;
    here->met_at |= weft__here_bit(place);
}

/* A number in [0, bound), for fairness alone: splitmix64 of a count. The same seed gives the same numbers. */
static inline uint32_t weft__here_draw(uint32_t bound)
{
    return (uint32_t)(((weft__rand_split(&weft__here()->draws) >> 32) * bound) >> 32);
}

#endif
