#!/bin/sh
# SPDX-License-Identifier: MIT
# servers.sh LOAD PROGRAM... - every server of each program answers rightly, byte by byte: one request at a time, pipelined, cut into pieces, and both;
# what is refused; what it tells at its end. Few connections, a few hundred requests each; how fast is not looked at.
set -u
load=$1
shift
work=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null; rm -rf "$work"' EXIT
failures=0
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # the bare loops end with their connections open
export ASAN_OPTIONS

complain() {
    printf '%s\n' "FAILED: $*" "--- the server says:"
    cat "$work/out" "$work/err" 2>/dev/null
    echo "--- the load says:"
    cat "$work/load" 2>/dev/null
    failures=$((failures + 1))
}

refuses() { # CODE SENTENCE COMMAND...: ends at once with that code, and says so
    wanted=$1 sentence=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ "$code" -eq "$wanted" ] || complain "$* exits with $code instead of $wanted"
    grep -q -e "$sentence" "$work/err" || complain "$* does not say: $sentence"
}

# start PROGRAM CASE WORKERS: false where it cannot listen.
start() {
    : >"$work/out"
    "$1" "$2" "$3" 0 >"$work/out" 2>"$work/err" &
    server=$!
    port=
    while [ -z "$port" ]; do
        port=$(sed -n "s/^$2_listens \([0-9]*\)\$/\1/p" "$work/out")
        kill -0 "$server" 2>/dev/null || return 1
        [ -n "$port" ] || sleep 0.02
    done
}

stop() { # CASE LEAST MOST: it ends by the signal, and has counted so many requests
    kill -TERM "$server"
    wait "$server"
    code=$?
    server=
    [ "$code" -eq 0 ] || complain "$1 exits with $code"
    grep -qE "^$1 [0-9.]+ us (epoll|io_uring)\$" "$work/out" || complain "$1 does not tell what a request has cost"
    grep -qE "^$1_user [0-9.]+\$" "$work/out" || complain "$1 does not tell its time in user space"
    grep -qE "^$1_system [0-9.]+\$" "$work/out" || complain "$1 does not tell its time in the kernel"
    count=$(sed -n "s/^$1_requests //p" "$work/out")
    if [ "${count:-0}" -lt "$2" ] || [ "${count:-0}" -gt "$3" ]; then
        complain "$1 has counted ${count:-no} requests, not $2 to $3"
    fi
}

asks() { # KIND OPTIONS
    # shellcheck disable=SC2086  # words
    "$load" "$1" "$port" --conns=5 --requests=300 $2 >"$work/load" 2>&1 || complain "load $1 $2 exits with $?"
    grep -qx 'load_requests 300' "$work/load" || complain "load $1 $2 has not counted its requests"
}

says() { # WHAT STATUS: one that is sent, and how it is answered
    answer=$(printf '%b' "$1" | timeout 20 nc 127.0.0.1 "$port" | sed -n 1p | tr -d '\r')
    case $answer in
    "HTTP/1.1 $2 "*) ;;
    *) complain "$2 is answered: $answer" ;;
    esac
}

try_server() { # PROGRAM CASE WORKERS
    start "$1" "$2" "$3" || {
        if grep -q 'io_uring, as of' "$work/err"; then
            echo "$2: no io_uring here"
        else
            complain "$1 $2 $3 does not listen"
        fi
        server=
        return
    }
    kind=${2%_fiber}
    set -- "$2"
    for options in "" "--depth=7" "--depth=50" "--cut=1" "--cut=9 --depth=3" "--cut=1000 --depth=40"; do
        asks "$kind" "$options"
    done
    least=1800 most=1830 # and the first of each connection
    if [ "$kind" = echo ]; then
        "$load" echo "$port" --conns=3 --requests=64 --depth=4 --size=5000 >"$work/load" 2>&1 || complain "large messages"
        most=$((most + 67 * 5000 / 64))
    elif command -v nc >/dev/null; then
        says 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' 200
        says 'GET / HTTP/1.0\r\n\r\n' 200
        says 'GET / HTTP/1.1\r\n\r\n' 400
        says 'nonsense\r\n\r\n' 400
        says 'POST / HTTP/1.1\r\nHost: x\r\n\r\n' 405
        says 'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n' 413
        says "GET / HTTP/1.1\r\nX: $(printf '%02029d' 0)" 431 # 2,048 bytes: with more, the close would take the answer with it
        says 'GET / HTTP/1.2\r\nHost: x\r\n\r\n' 505
        most=$((most + 8))
    fi
    "$load" "$kind" "$port" --conns=1 --requests=10 >"$work/load" 2>&1 || complain "$1: at its end"
    stop "$1" $least $((most + 11))
}

for program; do
    name=$(basename "$program")
    workers="1"
    case $name in weft*) workers="0 1 2" ;; esac
    for case in $("$program" --servers); do
        for count in $workers; do
            try_server "$program" "$case" "$count"
        done
    done
    refuses 2 '70000 is no port' "$program" http 1 70000
    case $name in
    limit_bench)
        for case in echo http; do
            WEFT_DRIVER=io_uring
            export WEFT_DRIVER
            try_server "$program" "$case" 1
            unset WEFT_DRIVER
        done
        refuses 2 'one thread' "$program" http 2 0
        refuses 2 'WEFT_DRIVER is epoll or io_uring' env WEFT_DRIVER=kqueue "$program" http 1 0
        refuses 3 'no case nonsense' "$program" nonsense
        ;;
    uv_bench) refuses 2 'one thread' "$program" http 2 0 ;;
    esac
done

refuses 2 'no option --nonsense' "$load" echo 7 --nonsense
refuses 2 'no load for nonsense' "$load" nonsense 7
refuses 2 'a number that will not do: 0' "$load" echo 7 --conns=0
refuses 2 'seconds that will not do: x' "$load" echo 7 --seconds=x
refuses 2 'a case and a port' "$load"
# shellcheck disable=SC2016  # the inner shell's
refuses 2 'need 516 descriptors' sh -c 'ulimit -n 100 && exec "$0" echo 7 --conns=500' "$load"
refuses 1 'Connection refused' "$load" echo 1

[ "$failures" -eq 0 ]
