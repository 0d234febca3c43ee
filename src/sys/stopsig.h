/* SPDX-License-Identifier: MIT
 *
 * stopsig - the signals that ask a program to stop: SIGINT and SIGTERM.
 *
 * They are caught only where nothing else was decided: one that is ignored stays so (nohup, and what
 * a shell starts in the background), and a handler that is there stays in charge.
 * In the child of a fork they kill, as if nobody had caught them: who asked is not there.
 * A handler, and no thread in sigwait or signalfd: both want the signals blocked in every thread, and
 * a mask is inherited by what the program executes, which then cannot be stopped; a handler is not. No
 * pipe to oneself either: its descriptors can be closed under it, and it needs somebody who reads.
 *
 * Threads: any. The handlers stay for the life of the process.
 */
#ifndef WEFT_SYS_STOPSIG_H
#define WEFT_SYS_STOPSIG_H

/* Have heard(signal) called by the handler, on whatever thread the signal meets; errno is put back
 * behind it. Blocks: no. */
void weft__stopsig_catch(void (*heard)(int signal));

/* Die by the signal, as if nothing had been caught. Returns where that is not possible, as for the
 * first process of a container. Async-signal-safe. */
void weft__stopsig_die(int signal);

/* "SIGINT", "SIGTERM" */
const char *weft__stopsig_name(int signal);

#endif
