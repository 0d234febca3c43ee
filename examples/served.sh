# SPDX-License-Identifier: MIT
# served.sh - what the tests of servers share; they source it. Nothing here looks at a clock: a line that does not come is the watchdog's business (ctest).
#
#   needs curl nc           skips the test where one of them is not installed
#   start SERVER [ARGS]     runs it, and waits for the line that says where it listens: $port
#   line                    the next line that it prints
#   stop                    SIGINT, and its end, which has to be a clean one; stop_by TERM: another signal
#   same GOT WANTED         or the test fails
# WEFT_UNDER="valgrind -q --error-exitcode=9 --leak-check=full" runs the servers under that.
# shellcheck shell=sh
set -eu
. "$(dirname "$0")/driver.sh"
work=$(mktemp -d)
server=
trap 'code=$?; [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true; rm -rf "$work"; exit $code' EXIT

fail() {
    echo "FAILED: $*"
    exit 1
}

needs() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
    done
}

line() {
    IFS= read -r line <&3 || fail "it has ended, or closed its output"
}

# A shell has what runs in its background ignore SIGINT: so that is put right first.
start() {
    mkfifo "$work/out"
    # shellcheck disable=SC2086  # a command with its arguments, or nothing
    env --default-signal=INT ${WEFT_UNDER:-} "$@" >"$work/out" &
    server=$!
    exec 3<"$work/out"
    line
    port=${line##*:}
    [ "$line" != "$port" ] || fail "it does not say where it listens, but: $line"
}

stop_by() {
    kill -"$1" "$server"
    code=0
    wait "$server" || code=$?
    server=
    exec 3<&-
    rm "$work/out"
    [ "$code" -eq 0 ] || fail "it exits with $code"
}

stop() {
    stop_by INT
}

same() {
    [ "$1" = "$2" ] || fail "got: $1
wanted: $2"
}
