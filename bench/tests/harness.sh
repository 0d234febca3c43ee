#!/bin/sh
# SPDX-License-Identifier: MIT
# harness.sh SAMPLE - the command line of bench/harness.h, as bench/compare relies on it.
set -u
sample=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

complain() {
    printf '%s\n' "FAILED: $*" "--- stdout:"
    cat "$work/out"
    echo "--- stderr:"
    cat "$work/err"
    failures=$((failures + 1))
}

run() { # CODE ARGUMENT...
    wanted=$1
    shift
    "$sample" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ "$code" -eq "$wanted" ] || complain "$* exits with $code instead of $wanted"
}

run 0 --list
[ "$(tr '\n' ' ' <"$work/out")" = "count memory unchecked workers wrong " ] || complain "the list is not all cases in order"

run 0 count
[ "$(grep -cE '^count [0-9]+\.[0-9]+$' "$work/out")" -eq 5 ] || complain "five rounds were expected"
grep -qx 'count_rounds 5.0' "$work/out" || complain "the state did not live through all rounds"
[ "$(cat "$work/err")" = "checksum count 499500" ] || complain "the checksum of the default N was expected"

run 0 count 1 10
[ "$(cat "$work/err")" = "checksum count 45" ] || complain "the checksum of N = 10 was expected"

run 0 workers
[ "$(cat "$work/out")" = "workers 2.000 workers" ] || complain "two workers are the default, and one round was asked for"
run 0 workers 0
[ "$(cat "$work/out")" = "workers 0.000 workers" ] || complain "no workers were expected"

run 0 memory
grep -qE '^memory [1-9]' "$work/out" || complain "a process has resident memory"

run 1 wrong
grep -q 'the checksum is 1 instead of 2' "$work/err" || complain "it does not say what is wrong"
run 1 unchecked
grep -q 'no checksum' "$work/err" || complain "a case that checks nothing was let through"
run 3 nonsense
grep -q 'no case nonsense' "$work/err" || complain "it does not say which case is missing"
for arguments in "" "count two" "count -1" "count 1 1x" "count 9999" "count 1 2 3"; do
    # shellcheck disable=SC2086  # words
    run 2 $arguments
done

[ "$failures" -eq 0 ]
