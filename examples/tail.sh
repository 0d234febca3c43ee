#!/bin/sh
# SPDX-License-Identifier: MIT
# tail.sh TAIL - a file that is not there yet, grows, is truncated, rotated and deleted; and ^C.
. "$(dirname "$0")/served.sh"
log=$work/log
mkfifo "$work/out"
# shellcheck disable=SC2086
env --default-signal=INT ${WEFT_UNDER:-} "$1" "$log" >"$work/out" &
server=$!
exec 3<"$work/out"

prints() {
    for want in "$@"; do
        line
        same "$line" "$want"
    done
}

echo 'the first' >"$log"
prints 'the first'
printf 'the second\nthe third\n' >>"$log"
prints 'the second' 'the third'
echo 'short' >"$log" # truncated
prints 'short'
mv "$log" "$log.1"
echo 'a late one' >>"$log.1" # by somebody who has it open
prints 'a late one'
echo 'a later one' >>"$log.1"
echo 'of the new one' >"$log"
prints 'a later one' 'of the new one'
rm "$log"
seq 5000 >"$log"
while [ "${line:-}" != 5000 ]; do line; done
stop
