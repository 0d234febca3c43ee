/* SPDX-License-Identifier: MIT
 *
 * load - the load of a network case: what is asked for, what came of it.
 *
 * A connection has `depth` requests under way, and asks for the next one when an answer is whole: a closed loop. Requests and answers are a
 * script, texts of a fixed length; a script with a stamp has the connection and the request's number in front of each, so that an
 * answer which belongs to another is found out. Every byte of every answer is compared.
 *
 *     ramp    connections are made, at most RAMP_MOST at a time: the next one when one has had its first answer, so no queue overflows
 *     warm    all of them ask
 *     count   the same, and times are kept; SIGUSR1 and SIGUSR2 tell the server when it begins and ends
 *     drain   nobody asks any more; what is under way is waited for
 */
#ifndef WEFT_BENCH_LOAD_LOAD_H
#define WEFT_BENCH_LOAD_LOAD_H

#include "hist.h"

#include <stdbool.h>
#include <sys/types.h>

struct load_script {
    const char *request;
    size_t request_bytes;
    const char *answer;
    size_t answer_bytes;
    bool stamped; /* the first 8 bytes of both are the stamp */
};

struct load_plan {
    struct load_script script;
    uint16_t port;
    unsigned conns;
    unsigned depth;
    double warm_s;
    double count_s;
    uint64_t
        requests; /* if not 0: so many in all, whatever time it takes, and all of them counted */
    size_t cut_bytes; /* of one send at most; 0: as much as there is */
    pid_t server;     /* to be told of the count; 0: nobody */
};

struct load_result {
    uint64_t requests; /* counted */
    double seconds;
    double cpu_us;     /* of this program, meanwhile */
    struct hist times; /* ns from request to whole answer */
};

/* Runs it. Ends the process with code 1, and a sentence, if an answer is wrong or does not come. */
void load_run(const struct load_plan *plan, struct load_result *into);

#endif
