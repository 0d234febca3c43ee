/* SPDX-License-Identifier: MIT
 *
 * context - the first instructions on a fresh stack.
 *
 * The stack pointer is at two words: the argument, and the function that takes it. The function
 * never returns; if it did, the trap says so.
 */
#include "task/context.h"

#if defined(__x86_64__)

__asm__(".pushsection .text\n"
        ".globl weft__context_entry\n"
        ".hidden weft__context_entry\n"
        ".type weft__context_entry, @function\n"
        "weft__context_entry:\n"
        ".cfi_startproc\n"
        ".cfi_undefined rip\n"
        "    endbr64\n"
        "    movq (%rsp), %rdi\n"
        "    call *8(%rsp)\n"
        "    ud2\n"
        ".cfi_endproc\n"
        ".size weft__context_entry, . - weft__context_entry\n"
        ".popsection\n");

/* How functions return that are marked WEFT__JUMPS_BACK. `notrack`: it goes to where a call came from, and there is no landing. */
__asm__(".pushsection .text\n"
        ".weak __x86_return_thunk\n"
        ".hidden __x86_return_thunk\n"
        ".type __x86_return_thunk, @function\n"
        "__x86_return_thunk:\n"
        ".cfi_startproc\n"
        "    popq %rcx\n"
        ".cfi_def_cfa_offset 0\n"
        ".cfi_register rip, rcx\n"
        "    notrack jmpq *%rcx\n"
        ".cfi_endproc\n"
        ".size __x86_return_thunk, . - __x86_return_thunk\n"
        ".popsection\n");

#elif defined(__aarch64__)

__asm__(".pushsection .text\n"
        ".globl weft__context_entry\n"
        ".hidden weft__context_entry\n"
        ".type weft__context_entry, %function\n"
        "weft__context_entry:\n"
        ".cfi_startproc\n"
        ".cfi_undefined x30\n"
        "    hint #38\n" /* bti jc */
        "    ldp x0, x1, [sp]\n"
        "    mov x30, xzr\n"
        "    blr x1\n"
        "    brk #1\n"
        ".cfi_endproc\n"
        ".size weft__context_entry, . - weft__context_entry\n"
        ".popsection\n");

#endif
