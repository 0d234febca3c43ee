/* SPDX-License-Identifier: MIT
 *
 * signal - signals of the system as something to wait for.
 *
 *     weft_signal *hup;
 *     r = weft_signal_open(SIGHUP, &hup);
 *     while ((r = weft_signal_wait(hup)) > 0) reload();     fibers and threads; or an arm of a select
 *     weft_signal_close(hup);
 *
 * From the open on, the signal does nothing else in this process: no handler of the program's is called, and it does not kill; SIGINT and
 * SIGTERM no longer cancel WEFT_MAIN's function. When the last one is closed, all is as it was before. Signals are coalesced, by the
 * kernel and here: several that come before anybody looks are one. Any number may be open for the same signal, and each hears of it.
 * Not for signals that a fault of the program raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS). SIGPIPE kills nobody who writes by
 * weft (stream.h). For the end of children: weft_proc_wait. In the child of a fork signals do what they do by default,
 * until it opens some of its own.
 */
#ifndef WEFT_SIGNAL_H
#define WEFT_SIGNAL_H

#include <weft/fd.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_signal weft_signal;

/* Listen from now on, on the current runtime. Gives one, for weft_signal_close. Context: anywhere but in a signal handler.
 * Returns 0; -EINVAL: no such signal, or one that cannot be had; -EMFILE, -ENFILE, -ENOMEM, -ENOSPC; -ENXIO: there is no runtime; -ESHUTDOWN; -ECHILD. */
WEFT_API int weft_signal_open(int number, weft_signal **into);

/* Wait until it has come since the last time that this one said so, or since its open. Borrows. Cancel-safe: one that was given up, or lost in a select, has
 * taken nothing.
 * Returns 1; -ECANCELED, -ETIME; -ESHUTDOWN; -ECHILD; -EINVAL for NULL; -EDEADLK in a stackless poll (call form). */
struct weft_signal_wait {
    WEFT_FRAME(int);
    weft_signal *signal;
    struct weft_fd_try weft__try WEFT__ZERO;
};
WEFT_API weft_pollfn weft_signal_wait_poll;
WEFT_API int weft__signal_wait(weft_signal *signal);
#define WEFT__PROBES_weft_signal_wait ~, WEFT__ARM_PROBES
#define weft_signal_wait(signal)                                                                   \
    (WEFT__CALL_FORM("weft_signal_wait()"), weft__signal_wait(signal))

/* Takes it. Nobody waits for it. Never waits, but for a handler that is just running; never fails. NULL is fine. */
WEFT_API void weft_signal_close(weft_signal *signal);

#ifdef __cplusplus
}
#endif

#endif
