#!/bin/sh
# SPDX-License-Identifier: MIT
# http_hello.sh SERVER - the HTTP server with curl, wrk and nc: answers, kept connections, pipelined requests, what is refused; the end while clients are there.
. "$(dirname "$0")/served.sh"
needs curl wrk nc
start "$1" 127.0.0.1:0
at=http://127.0.0.1:$port

get() { # ARGS: curl, with no progress shown and no proxy
    curl --no-progress-meter --noproxy '*' "$@"
}
status() {
    get --output /dev/null --write-out '%{http_code}' "$@"
}

same "$(get "$at")" "hello, world"
same "$(get "$at/hello/you?and=me")" "hello, you"
same "$(get --http1.0 "$at")" "hello, world"
same "$(get --head "$at" | tr -d '\r' | sed -n 's/^Content-Length: //p')" 13
same "$(status "$at/nowhere")" 404
same "$(status --data body "$at")" 405
same "$(status --request GET --data body "$at")" 413
same "$(status --header "X-Long: $(printf '%09000d' 0)" "$at")" 431
same "$(status --header 'Host:' "$at")" 400

# One connection for all, unless one of them asks for its end.
connects() {
    get --output /dev/null --output /dev/null --write-out '%{num_connects} ' "$@" "$at" "$at/nowhere"
}
same "$(connects)" "1 0 "
same "$(connects --header 'Connection: close')" "1 1 "

# Pipelined: many in one piece, answered in order, more than fit into one buffer of answers; then half a request, which is dropped.
{
    printf 'GET /hello/%d HTTP/1.1\r\nHost: x\r\n\r\n' $(seq 100)
    printf 'GET /hello'
} >"$work/requests"
nc -N 127.0.0.1 "$port" <"$work/requests" | grep '^hello' >"$work/answers"
printf 'hello, %d\n' $(seq 100) | cmp - "$work/answers"
same "$(printf 'nonsense\r\n\r\nGET / HTTP/1.1\r\n\r\n' | nc -N 127.0.0.1 "$port" | head -1 | tr -d '\r')" "HTTP/1.1 400 Bad Request"

# Many at once.
get --parallel --parallel-max 50 "$at/hello/[1-500]" | sort -u | wc -l >"$work/count"
same "$(tr -d ' ' <"$work/count")" 500

# How many wrk gets is not looked at, but that it gets some, and nothing else. A second that was too short for any is no answer: it asks once more.
: >"$work/wrk"
until grep -q '^ *[1-9][0-9]* requests in ' "$work/wrk"; do
    wrk -t1 -c50 -d1s --timeout 60s "$at/" >"$work/wrk"
    ! grep -q 'Non-2xx\|Socket errors' "$work/wrk" || fail "$(cat "$work/wrk")"
done

# The end comes while a connection is kept, in the middle of a request.
mkfifo "$work/open" "$work/last"
nc 127.0.0.1 "$port" <"$work/open" >"$work/last" &
exec 4>"$work/open"
printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT' >&4
grep -q 'hello, world' "$work/last" || fail "no answer"
stop
