/* SPDX-License-Identifier: MIT
 *
 * segv - sigaction, sigaltstack, and the way on to the handler that was there before.
 */
#include "sys/segv.h"

#include "base/atomic.h"
#include "sys/lock.h"
#include "sys/mem.h"
#include "sys/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <unistd.h>

/* What the handler, and a handler behind it, may use beside the kernel's frame. Doubled: 32 KiB of
 * addresses more per thread, and pages only where they are touched. */
#define HANDLER_BYTES ((size_t)32 * 1024)

/* The least that the kernel's frame needs, where it does not say. */
#define KERNEL_FRAME_BYTES ((size_t)2048)

/* What our handler alone needs beside the kernel's frame: an alternate stack of somebody else's that
 * has this will do. */
#define ENOUGH_BYTES ((size_t)4096)

static struct weft__lock install_lock = WEFT__LOCK_INIT(WEFT__RANK_NONE);

/* Written once, before the handler is there to read it. */
static struct sigaction before;
static weft__segv_question *question;
static bool installed; /* guarded by install_lock */

/* ---- dying ----------------------------------------------------------------------------------------- */

static void back_to_default(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGSEGV, &plain, NULL); /* fails for a bad number alone */
}

/* The signal is blocked until the handler returns, and then kills where the fault was: a core shows
 * the stack that faulted, not this one. */
static void die(void)
{
    back_to_default();
    (void)raise(SIGSEGV);
}

/* ---- the handler ------------------------------------------------------------------------------------- */

static bool was_sent(const siginfo_t *info)
{
    return info->si_code <= 0; /* by kill, tgkill or sigqueue; a fault's are positive */
}

static void pass_on(int signal, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_RESETHAND) back_to_default();
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(signal, info, context);
    } else {
        before.sa_handler(signal);
    }
}

/* Nobody was there before us; a fault that is to be ignored kills all the same. */
static bool dies_by_default(const siginfo_t *info)
{
    if (before.sa_flags & SA_SIGINFO) return false;
    return before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && !was_sent(info));
}

static bool is_ignored(const siginfo_t *info)
{
    return !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_IGN && was_sent(info);
}

static void handler(int signal, siginfo_t *info, void *context)
{
    int saved = errno; /* the thread's, in the middle of whatever it did */

    if ((!was_sent(info) && question(info->si_addr)) || dies_by_default(info)) {
        die();
    } else if (!is_ignored(info)) {
        pass_on(signal, info, context);
    }
    errno = saved;
}

/* holds: install_lock */
static int install(weft__segv_question *q)
{
    if (sigaction(SIGSEGV, NULL, &before) < 0) return -errno;

    struct sigaction ours = {
        .sa_sigaction = handler,
        .sa_mask = before.sa_mask,
        .sa_flags = SA_SIGINFO | SA_ONSTACK | (before.sa_flags & (SA_RESTART | SA_NODEFER)),
    };
    question = q;
    if (sigaction(SIGSEGV, &ours, NULL) < 0) return -errno;
    installed = true;
    return 0;
}

int weft__segv_install(weft__segv_question *q)
{
    int r = 0;
    weft__lock_take(&install_lock);
    if (!installed) r = install(q);
    weft__lock_drop(&install_lock);
    return r;
}

struct weft__lock *weft__segv_lock(void)
{
    return &install_lock;
}

void weft__segv_say(const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = write(STDERR_FILENO, text, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return;
        text += done;
        bytes -= (size_t)done;
    }
}

/* ---- the alternate stack ------------------------------------------------------------------------------ */

/* The kernel saves the processor's registers there, of which some machines have many. One before 5.14 does not say how many, which errno would tell. */
static size_t kernel_frame_bytes(void)
{
    int kept = errno;
    size_t said = (size_t)getauxval(AT_MINSIGSTKSZ);
    errno = kept;
    return said > KERNEL_FRAME_BYTES ? said : KERNEL_FRAME_BYTES;
}

static bool will_do(const stack_t *had)
{
    return !(had->ss_flags & SS_DISABLE) && had->ss_size >= kernel_frame_bytes() + ENOUGH_BYTES;
}

int weft__altstack_init(struct weft__altstack *a)
{
    stack_t had;

    *a = (struct weft__altstack){.memory = NULL};
    if (sigaltstack(NULL, &had) < 0) return -errno;
    if (will_do(&had)) return 0;
    size_t bytes = kernel_frame_bytes() + HANDLER_BYTES;
    int r = weft__mem_map(bytes, &a->memory);
    if (r < 0) return r;
    stack_t ours = {.ss_sp = a->memory, .ss_size = bytes};
    if (sigaltstack(&ours, NULL) < 0) {
        r = -errno;
        (void)weft__mem_unmap(a->memory, bytes);
        a->memory = NULL;
        return r;
    }
    a->bytes = bytes;
    a->before = had.ss_sp;
    a->before_bytes = had.ss_size;
    a->before_flags = had.ss_flags;
    return 0;
}

void weft__altstack_done(struct weft__altstack *a)
{
    stack_t now;

    if (!a->memory) return;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == a->memory) {
        stack_t had = {.ss_sp = a->before, .ss_size = a->before_bytes, .ss_flags = a->before_flags};
        (void)sigaltstack(&had, NULL); /* the kernel had accepted it before */
    }
    (void)weft__mem_unmap(a->memory, a->bytes); /* at worst the addresses stay taken */
    a->memory = NULL;
}

/* ---- the same for a thread that is not ours ------------------------------------------------------------ */

static _Thread_local struct kept {
    struct weft__thread_exit exit;
    struct weft__altstack altstack;
    bool there;
} kept __attribute__((tls_model("initial-exec")));

static void thread_ends(struct weft__thread_exit *unused)
{
    (void)unused;
    if (kept.there) weft__altstack_done(&kept.altstack);
    kept.there = false;
}

/* The end is asked for first: what could not be given back is not taken. */
int weft__altstack_keep(void)
{
    if (kept.there) return 0;
    int r = weft__thread_at_exit(&kept.exit, thread_ends);
    if (r == 0) r = weft__altstack_init(&kept.altstack);
    kept.there = r == 0;
    return r;
}
