/* SPDX-License-Identifier: MIT
 *
 * Workers that have fds, with the real loop (worker_loop.h): they sleep in their ports, and are woken by
 * an event that is signalled. No worker sleeps upon a task; all leave when the runtime stops.
 */
#include "worker_loop.h"

static void one_from_outside_to_a_port(void)
{
    next_has_fds = true;
    one_from_outside();
}

static void pinned_from_outside_to_a_port(void)
{
    next_has_fds = true;
    pinned_from_outside();
}

static void stopped_in_a_port(void)
{
    next_has_fds = true;
    stopped();
}

static void two_workers_in_ports(void)
{
    next_has_fds = true;
    two_workers_one_from_outside();
}

static void two_stopped_in_ports(void)
{
    next_has_fds = true;
    two_stopped();
}

static const struct model_case cases[] = {
    {.name = "worker: a task from outside, to a port", .run = one_from_outside_to_a_port, .preemptions = 3},
    {.name = "worker: a pinned task from outside, to a port", .run = pinned_from_outside_to_a_port, .preemptions = 3},
    {.name = "worker: stopped while it falls asleep in its port", .run = stopped_in_a_port, .preemptions = 3},
    {.name = "worker: two workers in ports, one from outside", .run = two_workers_in_ports, AT_RANDOM},
    {.name = "worker: two are stopped in their ports", .run = two_stopped_in_ports, .preemptions = 1},
    {.name = "mutant: the re-scan leaves the inject queue out, in a port",
     .run = one_from_outside_to_a_port,
     .preemptions = 2,
     .mutant = INJECT_NOT_SCANNED,
     .must_fail = true,
     .why = "lost"},
    {.name = "mutant: a waker signals nothing to a port",
     .run = one_from_outside_to_a_port,
     .preemptions = 2,
     .mutant = WAKER_KEEPS_SILENT,
     .must_fail = true,
     .why = "lost"},
};

int main(int argc, char **argv)
{
    return model_main(argc, argv, cases, MODEL_COUNT(cases));
}
