/* SPDX-License-Identifier: MIT
 *
 * context - where a stack goes on: three words, and the jump between two stacks.
 *
 * The switch is inline and tells the compiler that every register changes, so it saves the stack
 * pointer, the frame pointer and the address to go on at, and the compiler saves what is alive,
 * which in the two functions that switch is next to nothing. It ends with a jump, not a return: the
 * processor predicts it by its place, and a return would go somewhere else than its call came from.
 *     about 1 ns;  push and pop of six registers 4 ns;  the same with `ret` 8 ns;  swapcontext 220 ns
 *
 * The landing carries endbr64 or bti, so that a processor that checks the targets of jumps lets it
 * pass. A fresh stack begins at weft__context_entry, which takes its argument and its function from
 * the stack; its unwinding information says that nobody called it, and its frame pointer is 0, so
 * that a debugger's or profiler's walk ends there.
 *
 * Not saved: the floating-point environment (rounding, exception masks), the signal mask, errno.
 * They belong to the thread. Shadow stacks (x86 SHSTK, aarch64 GCS) are not switched: a process that
 * has them on cannot use fibers, nor, on x86, anything else that returns by a jump (io/direct.h).
 * Rejected: saving mxcsr and the x87 word (1.4 ns more on each switch, for what few programs change).
 */
#ifndef WEFT_TASK_CONTEXT_H
#define WEFT_TASK_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

/* The sanitizers keep a stack of calls per fiber; a function that changes stacks must not add to it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define WEFT__UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define WEFT__UNSANITIZED
#endif

/* For a function in which the stack was changed: it returns by a jump. A processor predicts a return from the calls it has seen, and those were made
 * on the other stack: it would be wrong each time, 15 to 20 cycles. An indirect jump is predicted by where it went before, and is right.
 * (The compilers' way to have returns replaced was made for the kernel: they jump to __x86_return_thunk, which is context.c's. It clobbers rcx,
 * hence noipa: a caller must not think that it knows better.) To be kept apart from paths that did not switch: there a return is right. */
#if defined(__x86_64__) && !defined(__clang__)
#define WEFT__JUMPS_BACK __attribute__((noipa, function_return("thunk-extern")))
#elif defined(__x86_64__)
#define WEFT__JUMPS_BACK __attribute__((noinline, function_return("thunk-extern")))
#else
#define WEFT__JUMPS_BACK __attribute__((noinline))
#endif

struct weft__context {
    void *sp; /* at 0; the assembly knows these places */
    void *fp; /* at 8 */
    void *pc; /* at 16 */
};

_Static_assert(offsetof(struct weft__context, sp) == 0, "known to the assembly");
_Static_assert(offsetof(struct weft__context, fp) == 8, "known to the assembly");
_Static_assert(offsetof(struct weft__context, pc) == 16, "known to the assembly");

/* Where a fresh stack begins. Never called. */
void weft__context_entry(void);

/* Make `into` begin with run(arg) on the stack below `top`, a multiple of 16. run never returns. */
static inline void weft__context_init(struct weft__context *into, void *top, void (*run)(void *),
                                      void *arg)
{
    uintptr_t *sp = (uintptr_t *)top - 2;
    sp[0] = (uintptr_t)arg;
    sp[1] = (uintptr_t)run;
    *into =
        (struct weft__context){.sp = sp, .fp = NULL, .pc = (void *)(uintptr_t)weft__context_entry};
}

#if defined(__x86_64__)

#if defined(__AVX512F__)
#define WEFT__CONTEXT_WIDE                                                                         \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",    \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6",  \
        "k7"
#else
#define WEFT__CONTEXT_WIDE
#endif

/* Save here in `from`, go on at `to`. Returns when somebody goes on at `from`, perhaps on another
 * thread. */
WEFT__UNSANITIZED static inline __attribute__((always_inline)) void
weft__context_swap(struct weft__context *from, const struct weft__context *to)
{
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "movq %%rsp, 0(%%rdi)\n\t"
                     "movq %%rbp, 8(%%rdi)\n\t"
                     "movq %%rax, 16(%%rdi)\n\t"
                     "movq 0(%%rsi), %%rsp\n\t"
                     "movq 8(%%rsi), %%rbp\n\t"
                     "jmpq *16(%%rsi)\n"
                     "1:\n\t"
                     "endbr64\n"
                     : "+D"(from), "+S"(to)
                     :
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                       "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                       "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "mm0",
                       "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", "memory",
                       "cc" WEFT__CONTEXT_WIDE);
}

#elif defined(__aarch64__)

/* As above. d8 to d15 are the callee's to save, so they must be named like all the others. */
WEFT__UNSANITIZED static inline __attribute__((always_inline)) void
weft__context_swap(struct weft__context *from, const struct weft__context *to)
{
    register struct weft__context *f __asm__("x0") = from;
    register const struct weft__context *t __asm__("x1") = to;

    __asm__ volatile("adr x2, 1f\n\t"
                     "mov x3, sp\n\t"
                     "stp x3, x29, [x0]\n\t"
                     "str x2, [x0, #16]\n\t"
                     "ldp x3, x29, [x1]\n\t"
                     "ldr x2, [x1, #16]\n\t"
                     "mov sp, x3\n\t"
                     "br x2\n"
                     "1:\n\t"
                     "hint #36\n" /* bti j */
                     : "+r"(f), "+r"(t)
                     :
                     : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
                       "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24",
                       "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6",
                       "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17",
                       "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
                       "v29", "v30", "v31", "memory", "cc");
}

#else
#error "fibers need a context switch for this processor: see task/context.h"
#endif

#endif
