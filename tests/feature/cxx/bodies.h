/* SPDX-License-Identifier: MIT
 *
 * bodies - what living_cxx.c and bodies.cc know of each other. A body answers 1 when it found what it should.
 */
#ifndef WEFT_TESTS_CXX_BODIES_H
#define WEFT_TESTS_CXX_BODIES_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

int cxx_things_alive(void);
int cxx_throws_after_await(int n);
int cxx_awaits_in_catch(int n);
int cxx_awaits_while_unwinding(int n);
int cxx_awaits_beneath(int n);
int cxx_throws_out(int n);
weft_poll cxx_throws_out_of_poll(void *frame, weft_cx *cx);
int cxx_turns_and_catches(weft_rt *rt);
int cxx_asks_the_blocking_pool(weft_lane *lane);
int cxx_keeps_time(void);
int cxx_gives_up(weft_token *stop);
int cxx_chooses(weft_token *stop);

/* living_cxx.c: polls a fiber whose body is cxx_awaits_in_catch, and gives its answer. */
int c_runs_fiber(int n);

#ifdef __cplusplus
}
#endif

#endif
