#!/bin/sh
# SPDX-License-Identifier: MIT
# parallel_fetch.sh FETCH HTTP_HELLO - pages of our own server; nobody there; somebody who never answers.
. "$(dirname "$0")/served.sh"
fetch=$1
start "$2" 127.0.0.1:0

# shellcheck disable=SC2046  # words
"$fetch" -j 4 "127.0.0.1:$port" $(seq -f '/hello/%g' 10 99) >"$work/pages" || fail "$(cat "$work/pages")"
same "$(cat "$work/pages")" "$(seq -f '200, 10 bytes: /hello/%g' 10 99)"
code=0
got=$("$fetch" "127.0.0.1:$port" / /nowhere) || code=$?
same "$got $code" "200, 13 bytes: /
404, 14 bytes: /nowhere 1"
stop

# Nobody listens there any more.
got=$("$fetch" -r 2 "127.0.0.1:$port" /) || true
same "$got" "error 111 after 2 tries: /"

# One listens, and never answers: the deadline ends it, and the rest is told as well.
start "$2" 127.0.0.1:0
kill -STOP "$server"
got=$("$fetch" -j 1 -t 0.3 "127.0.0.1:$port" / /next | grep -c -e '^error 62 after 1 tries: /' -e '^not begun: /next$') || true
kill -CONT "$server"
same "$got" 2
stop
