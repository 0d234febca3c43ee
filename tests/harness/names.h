/* SPDX-License-Identifier: MIT
 *
 * names - a resolver for tests: it stands in the place of the C library's, asks nobody, and does what the name says.
 *
 *     "table.test"     the addresses of names_table, with their ports
 *     "slow.test"      nobody answers until names_open()
 *     "none.test", "again.test", "fail.test", "service.test", "system.test", "memory.test"   the error of that name
 * All else goes on to the C library's own. relaxed everywhere: counts and flags that are looked at again.
 */
#ifndef WEFT_TESTS_NAMES_H
#define WEFT_TESTS_NAMES_H

#include "base/atomic.h"
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <weft/net.h>

static weft_addr names_table[8];
static size_t names_count;
static _Atomic uint32_t names_asked; /* how often anybody was */
static _Atomic uint32_t names_slow;  /* who waits in "slow.test" */
static _Atomic bool names_answer;    /* "slow.test" is answered */
static char names_mark[1];           /* the canonical name of what was made here */

static inline void names_reset(void)
{
    names_count = 0;
    store_relaxed(&names_asked, 0);
    store_relaxed(&names_answer, false);
}

/* Lets all go who wait, and those to come. */
static inline void names_open(void)
{
    store_relaxed(&names_answer, true);
    while (load_relaxed(&names_slow) > 0)
        sched_yield();
}

static inline int names_give(struct addrinfo **into)
{
    for (size_t i = 0; i < names_count; i++) {
        struct addrinfo *a = calloc(1, sizeof(*a));
        a->ai_addr = calloc(1, names_table[i].bytes);
        memcpy(a->ai_addr, names_table[i].weft__data, names_table[i].bytes);
        a->ai_addrlen = names_table[i].bytes;
        a->ai_family = a->ai_addr->sa_family;
        a->ai_canonname = names_mark;
        *into = a;
        into = &a->ai_next;
    }
    return 0;
}

static inline int names_wait(void)
{
    fetch_add_relaxed(&names_slow, 1);
    while (!load_relaxed(&names_answer))
        sched_yield();
    fetch_sub_relaxed(&names_slow, 1);
    return EAI_NONAME;
}

static inline int names_error(const char *host)
{
    static const struct {
        const char *host;
        int eai;
    } errors[] = {
        {"none.test", EAI_NONAME},       {"again.test", EAI_AGAIN},   {"fail.test", EAI_FAIL},
        {"service.test", EAI_SERVICE},   {"system.test", EAI_SYSTEM}, {"memory.test", EAI_MEMORY},
        {"family.test", EAI_ADDRFAMILY},
    };
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (strcmp(host, errors[i].host) == 0) return errors[i].eai;
    return 0;
}

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict req, struct addrinfo **restrict pai)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    fetch_add_relaxed(&names_asked, 1);
    if (strcmp(name, "table.test") == 0) return names_give(pai);
    if (strcmp(name, "slow.test") == 0) return names_wait();
    int eai = names_error(name);
    if (eai == EAI_SYSTEM) errno = EMFILE;
    if (eai) return eai;
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    return next(name, service, req, pai);
}

void freeaddrinfo(struct addrinfo *ai)
{
    void (*next)(struct addrinfo *);
    if (ai && ai->ai_canonname != names_mark) {
        *(void **)&next = dlsym(RTLD_NEXT, "freeaddrinfo");
        next(ai);
        return;
    }
    while (ai) {
        struct addrinfo *a = ai;
        ai = a->ai_next;
        free(a->ai_addr);
        free(a);
    }
}

#endif
