/* SPDX-License-Identifier: MIT
 *
 * weft - an async runtime for C. This header is all of it; one header per noun lies beneath.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/version.h>
#include <weft/alloc.h>
#include <weft/future.h>
#include <weft/task.h>
#include <weft/fiber.h>
#include <weft/rt.h>
#include <weft/blocking.h>
#include <weft/local.h>
#include <weft/time.h>
#include <weft/pool.h>
#include <weft/token.h>
#include <weft/select.h>
#include <weft/region.h>
#include <weft/chan.h>
#include <weft/cast.h>
#include <weft/lock.h>
#include <weft/sync.h>
#include <weft/set.h>
#include <weft/tracker.h>
#include <weft/keyed.h>
#include <weft/delay.h>
#include <weft/source.h>

#endif
