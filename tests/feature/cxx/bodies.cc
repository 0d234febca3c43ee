/* SPDX-License-Identifier: MIT
 *
 * Bodies of tasks in C++: what they throw, catch, and await in between. living_cxx.c spawns them.
 */
#include "bodies.h"

#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>

namespace {

/* Bigger than a register, and with a destructor that tells. */
struct thing {
    explicit thing(int n) : number(n), text("thing " + std::to_string(n))
    {
        alive++;
    }
    thing(const thing &other) : number(other.number), text(other.text)
    {
        alive++;
    }
    ~thing()
    {
        alive--;
    }
    bool is(int n) const
    {
        return number == n && text == "thing " + std::to_string(n);
    }
    int number;
    std::string text;
    static std::atomic<int> alive;
};
std::atomic<int> thing::alive;

/* Lets others run, and perhaps comes back on another thread. */
void pause_a_while(int n)
{
    for (int i = 0; i < 3 + n % 3; i++)
        (void)weft_yield();
}

struct awaits_in_destructor {
    explicit awaits_in_destructor(int *into) : seen(into)
    {
    }
    ~awaits_in_destructor()
    {
        pause_a_while(1);
        *seen = std::uncaught_exceptions();
    }
    int *seen;
};

} // namespace

int cxx_things_alive(void)
{
    return thing::alive;
}

/* Nothing is in flight while it waits. */
int cxx_throws_after_await(int n)
{
    try {
        pause_a_while(n);
        throw thing(n);
    } catch (const thing &t) {
        return t.is(n);
    }
}

/* A catch block that waits: its exception is still the current one afterwards, and can be thrown on. */
int cxx_awaits_in_catch(int n)
{
    try {
        try {
            throw thing(n);
        } catch (const thing &t) {
            pause_a_while(n);
            if (!t.is(n) || !std::current_exception()) return 0;
            try {
                throw thing(n + 1); /* one inside the other */
            } catch (const thing &inner) {
                pause_a_while(n);
                if (!inner.is(n + 1) || !t.is(n)) return 0;
            }
            pause_a_while(n);
            throw;
        }
    } catch (const thing &t) {
        pause_a_while(n);
        return t.is(n) && std::uncaught_exceptions() == 0;
    }
}

/* Waits while the stack is being unwound. */
int cxx_awaits_while_unwinding(int n)
{
    int in_flight = -1;
    try {
        awaits_in_destructor guard(&in_flight);
        throw thing(n);
    } catch (const thing &t) {
        if (!t.is(n) || in_flight != 1) return 0;
    }
    return !std::current_exception() && std::uncaught_exceptions() == 0;
}

/* A catch block that polls another fiber, which waits in a catch block of its own. */
int cxx_awaits_beneath(int n)
{
    try {
        throw thing(n);
    } catch (const thing &t) {
        if (!c_runs_fiber(n)) return 0;
        if (!t.is(n) || !std::current_exception()) return 0;
    }
    return !std::current_exception();
}

int cxx_throws_out(int n)
{
    throw std::runtime_error("thrown out of a task: " + std::to_string(n));
}

weft_poll cxx_throws_out_of_poll(void *frame, weft_cx *cx)
{
    (void)frame;
    (void)cx;
    throw std::runtime_error("thrown out of a poll");
}

/* Whoever turns the runtime would catch it. */
int cxx_turns_and_catches(weft_rt *rt)
{
    try {
        while (weft_rt_turn(rt, 0) >= 0) {
        }
    } catch (...) {
        return 1;
    }
    return 0;
}

static int add(int a, int b)
{
    return a + b;
}

/* Arguments are converted to what the parameters are, as in a call. */
static long length(const char *text, short more)
{
    return text[0] ? 1 + length(text + 1, more) : more;
}

int cxx_asks_the_blocking_pool(weft_lane *lane)
{
    int sum = weft_blocking(add, 1, 2);
    long long_sum = weft_blocking_as((lane, nullptr, nullptr, "length"), length, "abc", 4);
    return sum == 3 && long_sum == 7 ? 0 : -1;
}

/* On a clock that stands: times are exact. */
int cxx_keeps_time(void)
{
    weft_time begun = weft_now();
    weft_interval every = weft_interval_of(weft_ms(10));
    every.missed = WEFT_MISSED_SKIP;
    for (int i = 0; i < 3; i++) {
        if (weft_tick(&every) < 0) return -1;
    }
    if (weft_now() - begun != weft_ms(20)) return -2;
    if (weft_sleep(weft_ms(5)) < 0 || weft_sleep_until(begun + weft_ms(40)) < 0) return -3;
    return weft_now() - begun == weft_ms(40) ? 0 : -4;
}

int cxx_gives_up(weft_token *stop)
{
    int late = 0, over = 0, told = 0, bye = -1;
    WEFT_TIMEOUT(weft_ms(5)) late = weft_sleep(weft_secs(1));
    WEFT_DEADLINE(weft_now() + 1) over = weft_sleep(weft_secs(1));
    weft_token_cancel(stop);
    WEFT_UNTIL(stop)
    {
        told = weft_sleep(weft_secs(1));
        WEFT_SHIELD(weft_secs(1)) bye = weft_sleep(weft_ms(1));
    }
    if (late != -ETIME) return -1;
    if (over != -ETIME) return -2;
    if (told != -ECANCELED) return -3;
    return bye;
}

int cxx_chooses(weft_token *stop)
{
    struct weft_sleep near, far;
    struct weft_token_wait quit;
    int which =
        weft_select(weft_arm(far, weft_sleep, weft_ms(20)), weft_arm(near, weft_sleep, weft_ms(10)),
                    weft_when(false, weft_arm(quit, weft_token_wait, stop)));
    if (which != 1 || near.ret != 0 || far.ret != -ECANCELED) return -1;
    if (weft_select_biased(weft_arm(quit, weft_token_wait, stop), weft_otherwise) != 1) return -2;
    if (weft_all(weft_arm(far, weft_sleep, weft_ms(2)), weft_arm(near, weft_sleep, weft_ms(1))) !=
        0)
        return -3;
    if (weft_then(weft_arm(far, weft_sleep, weft_ms(2)), weft_arm(near, weft_sleep, weft_ms(1))) !=
        0)
        return -4;
    return weft_try_all(weft_arm(far, weft_sleep, weft_ms(2)),
                        weft_arm(near, weft_sleep, weft_ms(1)));
}
