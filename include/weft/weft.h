/* SPDX-License-Identifier: MIT
 *
 * weft - an async runtime for C. This header is all of it; one header per noun lies beneath.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/alloc.h>
#include <weft/blocking.h>
#include <weft/buf.h>
#include <weft/cast.h>
#include <weft/chan.h>
#include <weft/codec.h>
#include <weft/copy.h>
#include <weft/delay.h>
#include <weft/dns.h>
#include <weft/fd.h>
#include <weft/fiber.h>
#include <weft/file.h>
#include <weft/future.h>
#include <weft/incoming.h>
#include <weft/keyed.h>
#include <weft/local.h>
#include <weft/lock.h>
#include <weft/net.h>
#include <weft/part.h>
#include <weft/pool.h>
#include <weft/proc.h>
#include <weft/region.h>
#include <weft/rt.h>
#include <weft/scope.h>
#include <weft/select.h>
#include <weft/set.h>
#include <weft/signal.h>
#include <weft/source.h>
#include <weft/stdio.h>
#include <weft/stream.h>
#include <weft/sync.h>
#include <weft/task.h>
#include <weft/time.h>
#include <weft/token.h>
#include <weft/tracker.h>
#include <weft/udp.h>
#include <weft/unix.h>
#include <weft/version.h>

#endif
