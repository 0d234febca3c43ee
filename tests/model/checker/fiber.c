/* SPDX-License-Identifier: MIT
 *
 * fiber - stacks and the switch between them, for x86-64 and aarch64.
 *
 * Only what the ABI asks a callee to keep is saved. An execution that ends early abandons its fibers where they stand; the next one starts them afresh
 * on the same stacks, so nothing is ever unwound.
 */
#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STACK_BYTES (256 * 1024)
#define GUARD_BYTES (64 * 1024)     /* the largest page size in use: aarch64 may have 64 KiB */

char *model__stack_new(void)
{
    char *memory = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) != 0) abort();
    return memory + GUARD_BYTES;
}

/* Mappings begin at a page, so the end is aligned as both ABIs ask: to 16 bytes. */
static uintptr_t *stack_top(char *stack)
{
    return (void *)(stack + STACK_BYTES);
}

#if defined(__x86_64__)
__asm__(".text\n.globl model__switch\n.type model__switch,@function\nmodel__switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n    ret\n"
        ".size model__switch, .-model__switch\n.section .note.GNU-stack,\"\",@progbits\n.text\n");

void *model__stack_start(char *stack, void (*entry)(void))
{
    uintptr_t *sp = stack_top(stack);
    *--sp = 0;                      /* the entry's return address: it never returns */
    *--sp = (uintptr_t)entry;
    memset(sp - 6, 0, 6 * sizeof(*sp)); /* six callee-saved registers; a zero frame pointer ends a debugger's walk */
    return sp - 6;
}
#elif defined(__aarch64__)
__asm__(".text\n.globl model__switch\n.type model__switch,%function\nmodel__switch:\n"
        "    stp x29, x30, [sp, #-160]!\n    stp x19, x20, [sp, #16]\n    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n    stp x25, x26, [sp, #64]\n    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n    mov sp, x1\n"
        "    ldp d14, d15, [sp, #144]\n    ldp d12, d13, [sp, #128]\n    ldp d10, d11, [sp, #112]\n    ldp d8, d9, [sp, #96]\n"
        "    ldp x27, x28, [sp, #80]\n    ldp x25, x26, [sp, #64]\n    ldp x23, x24, [sp, #48]\n"
        "    ldp x21, x22, [sp, #32]\n    ldp x19, x20, [sp, #16]\n    ldp x29, x30, [sp], #160\n    ret\n"
        ".size model__switch, .-model__switch\n");

void *model__stack_start(char *stack, void (*entry)(void))
{
    uintptr_t *sp = stack_top(stack) - 20;
    memset(sp, 0, 160);
    sp[1] = (uintptr_t)entry;       /* x30 */
    return sp;
}
#else
#error "the model checker's fibers know x86-64 and aarch64"
#endif
