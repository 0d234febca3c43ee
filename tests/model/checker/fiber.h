/* SPDX-License-Identifier: MIT
 *
 * fiber - the threads of a test are fibers of one real thread: this switches between their stacks.
 */
#ifndef MODEL_FIBER_H
#define MODEL_FIBER_H

/* A stack with a guard page below it, mapped once and used again in every execution. */
char *model__stack_new(void);

/* What to switch to for `entry` to run on this stack. entry must not return. */
void *model__stack_start(char *stack, void (*entry)(void));

/* Save this stack's pointer, go on with the other. */
void model__switch(void **save_sp, void *to_sp);

#endif
