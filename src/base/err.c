/* SPDX-License-Identifier: MIT
 *
 * err - the one list of errnos, and the three ways to read it.
 *
 * EWOULDBLOCK, EDEADLOCK and ENOTSUP are second names of EAGAIN, EDEADLK and EOPNOTSUPP on Linux
 * and cannot stand in a switch beside them.
 */
#include "base/err.h"

#include "base/assert.h"

#include <errno.h>

#define ERRORS(X)                                                                                  \
    X(EPERM, "not permitted")                                                                      \
    X(ENOENT, "no such file or directory")                                                         \
    X(ESRCH, "no such process")                                                                    \
    X(EINTR, "interrupted by a signal")                                                            \
    X(EIO, "input/output error")                                                                   \
    X(ENXIO, "no such device or address")                                                          \
    X(E2BIG, "argument list too long")                                                             \
    X(ENOEXEC, "not an executable")                                                                \
    X(EBADF, "bad file descriptor")                                                                \
    X(ECHILD, "no such child process")                                                             \
    X(EAGAIN, "try again")                                                                         \
    X(ENOMEM, "out of memory")                                                                     \
    X(EACCES, "access denied")                                                                     \
    X(EFAULT, "bad address")                                                                       \
    X(ENOTBLK, "not a block device")                                                               \
    X(EBUSY, "busy")                                                                               \
    X(EEXIST, "exists already")                                                                    \
    X(EXDEV, "on another file system")                                                             \
    X(ENODEV, "no such device")                                                                    \
    X(ENOTDIR, "not a directory")                                                                  \
    X(EISDIR, "is a directory")                                                                    \
    X(EINVAL, "invalid argument")                                                                  \
    X(ENFILE, "too many open files in the system")                                                 \
    X(EMFILE, "too many open files in the process")                                                \
    X(ENOTTY, "not a terminal")                                                                    \
    X(ETXTBSY, "executable is busy")                                                               \
    X(EFBIG, "file too large")                                                                     \
    X(ENOSPC, "no space left")                                                                     \
    X(ESPIPE, "cannot seek")                                                                       \
    X(EROFS, "read-only file system")                                                              \
    X(EMLINK, "too many links")                                                                    \
    X(EPIPE, "other end is closed")                                                                \
    X(EDOM, "argument out of domain")                                                              \
    X(ERANGE, "result out of range")                                                               \
    X(EDEADLK, "would deadlock")                                                                   \
    X(ENAMETOOLONG, "name too long")                                                               \
    X(ENOLCK, "no locks left")                                                                     \
    X(ENOSYS, "not implemented by the kernel")                                                     \
    X(ENOTEMPTY, "directory not empty")                                                            \
    X(ELOOP, "too many symbolic links")                                                            \
    X(ENOMSG, "no message of that type")                                                           \
    X(EIDRM, "identifier removed")                                                                 \
    X(ECHRNG, "channel number out of range")                                                       \
    X(EL2NSYNC, "level 2 not synchronised")                                                        \
    X(EL3HLT, "level 3 halted")                                                                    \
    X(EL3RST, "level 3 reset")                                                                     \
    X(ELNRNG, "link number out of range")                                                          \
    X(EUNATCH, "protocol driver not attached")                                                     \
    X(ENOCSI, "no CSI structure available")                                                        \
    X(EL2HLT, "level 2 halted")                                                                    \
    X(EBADE, "invalid exchange")                                                                   \
    X(EBADR, "invalid request descriptor")                                                         \
    X(EXFULL, "exchange full")                                                                     \
    X(ENOANO, "no anode")                                                                          \
    X(EBADRQC, "invalid request code")                                                             \
    X(EBADSLT, "invalid slot")                                                                     \
    X(EBFONT, "bad font file format")                                                              \
    X(ENOSTR, "not a stream device")                                                               \
    X(ENODATA, "no data")                                                                          \
    X(ETIME, "deadline has passed")                                                                \
    X(ENOSR, "out of stream resources")                                                            \
    X(ENONET, "machine is not on the network")                                                     \
    X(ENOPKG, "package not installed")                                                             \
    X(EREMOTE, "object is remote")                                                                 \
    X(ENOLINK, "link is severed")                                                                  \
    X(EADV, "advertise error")                                                                     \
    X(ESRMNT, "srmount error")                                                                     \
    X(ECOMM, "communication error on send")                                                        \
    X(EPROTO, "protocol error")                                                                    \
    X(EMULTIHOP, "multihop attempted")                                                             \
    X(EDOTDOT, "RFS-specific error")                                                               \
    X(EBADMSG, "bad message")                                                                      \
    X(EOVERFLOW, "value too large for its type")                                                   \
    X(ENOTUNIQ, "name not unique on network")                                                      \
    X(EBADFD, "file descriptor in bad state")                                                      \
    X(EREMCHG, "remote address changed")                                                           \
    X(ELIBACC, "cannot access a shared library")                                                   \
    X(ELIBBAD, "corrupted shared library")                                                         \
    X(ELIBSCN, "corrupted .lib section")                                                           \
    X(ELIBMAX, "too many shared libraries")                                                        \
    X(ELIBEXEC, "cannot execute a shared library")                                                 \
    X(EILSEQ, "invalid byte sequence")                                                             \
    X(ERESTART, "interrupted call should be restarted")                                            \
    X(ESTRPIPE, "stream pipe error")                                                               \
    X(EUSERS, "too many users")                                                                    \
    X(ENOTSOCK, "not a socket")                                                                    \
    X(EDESTADDRREQ, "destination address required")                                                \
    X(EMSGSIZE, "message too long")                                                                \
    X(EPROTOTYPE, "wrong protocol type for socket")                                                \
    X(ENOPROTOOPT, "protocol option not available")                                                \
    X(EPROTONOSUPPORT, "protocol not supported")                                                   \
    X(ESOCKTNOSUPPORT, "socket type not supported")                                                \
    X(EOPNOTSUPP, "not supported")                                                                 \
    X(EPFNOSUPPORT, "protocol family not supported")                                               \
    X(EAFNOSUPPORT, "address family not supported")                                                \
    X(EADDRINUSE, "address in use")                                                                \
    X(EADDRNOTAVAIL, "address not available")                                                      \
    X(ENETDOWN, "network is down")                                                                 \
    X(ENETUNREACH, "network is unreachable")                                                       \
    X(ENETRESET, "connection dropped by network reset")                                            \
    X(ECONNABORTED, "connection aborted")                                                          \
    X(ECONNRESET, "connection reset by peer")                                                      \
    X(ENOBUFS, "no buffer space left")                                                             \
    X(EISCONN, "is connected already")                                                             \
    X(ENOTCONN, "not connected")                                                                   \
    X(ESHUTDOWN, "shut down")                                                                      \
    X(ETOOMANYREFS, "too many references")                                                         \
    X(ETIMEDOUT, "connection timed out")                                                           \
    X(ECONNREFUSED, "connection refused")                                                          \
    X(EHOSTDOWN, "host is down")                                                                   \
    X(EHOSTUNREACH, "host is unreachable")                                                         \
    X(EALREADY, "under way already")                                                               \
    X(EINPROGRESS, "in progress")                                                                  \
    X(ESTALE, "stale file handle")                                                                 \
    X(EUCLEAN, "structure needs cleaning")                                                         \
    X(ENOTNAM, "not a XENIX named type file")                                                      \
    X(ENAVAIL, "no XENIX semaphores available")                                                    \
    X(EISNAM, "is a named type file")                                                              \
    X(EREMOTEIO, "remote input/output error")                                                      \
    X(EDQUOT, "quota exceeded")                                                                    \
    X(ENOMEDIUM, "no medium found")                                                                \
    X(EMEDIUMTYPE, "wrong medium type")                                                            \
    X(ECANCELED, "cancelled")                                                                      \
    X(ENOKEY, "required key not available")                                                        \
    X(EKEYEXPIRED, "key has expired")                                                              \
    X(EKEYREVOKED, "key has been revoked")                                                         \
    X(EKEYREJECTED, "key was rejected")                                                            \
    X(EOWNERDEAD, "owner died")                                                                    \
    X(ENOTRECOVERABLE, "state not recoverable")                                                    \
    X(ERFKILL, "radio is switched off")                                                            \
    X(EHWPOISON, "memory page has a hardware error")

/* Negated without overflow: INT_MIN has no positive twin and is nobody's errno. */
static int positive(int error)
{
    return error < 0 ? (int)(0u - (unsigned)error) : error;
}

const char *weft__err_name(int error)
{
    switch (positive(error)) {
    case 0:
        return "OK";
#define X(name, text)                                                                              \
    case name:                                                                                     \
        return #name;
        ERRORS(X)
#undef X
    default:
        return "E?";
    }
}

const char *weft__err_text(int error)
{
    switch (positive(error)) {
    case 0:
        return "success";
#define X(name, text)                                                                              \
    case name:                                                                                     \
        return text;
        ERRORS(X)
#undef X
    default:
        return "unknown error";
    }
}

/* A writer that stops at the end of its buffer; snprintf would not be safe in a signal handler. */
struct cursor {
    char *at;
    char *end; /* the place of the last terminator */
};

static void put_text(struct cursor *c, const char *text)
{
    while (*text && c->at < c->end)
        *c->at++ = *text++;
}

static void put_number(struct cursor *c, unsigned n)
{
    char digits[12];
    char *first = digits + sizeof(digits) - 1;
    *first = '\0';
    do
        *--first = (char)('0' + n % 10);
    while (n /= 10);
    put_text(c, first);
}

char *weft__err_format(int error, char *into, size_t bytes)
{
    weft_assert(bytes > 0);
    struct cursor c = {.at = into, .end = into + bytes - 1};
    const char *name = weft__err_name(error);

    put_text(&c, name);
    if (name[0] == 'E' && name[1] == '?')
        put_number(&c, error < 0 ? 0u - (unsigned)error : (unsigned)error);
    put_text(&c, ": ");
    put_text(&c, weft__err_text(error));
    *c.at = '\0';
    return into;
}
