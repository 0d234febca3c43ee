#!/bin/sh
# SPDX-License-Identifier: MIT
# harness.sh FAILING EMPTY [debug] - does the harness notice what it promises to notice? The programs are failing.c and empty.c;
# "debug" says that memory is counted.
set -u
program=$1
empty=$2
debug=${3:-}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
failures=0

complain() {
    printf '%s\n' "FAILED: $*" "--- what it printed:"
    cat "$log"
    echo "---"
    failures=$((failures + 1))
}

# run CODE TEST... - run these tests and expect that exit code
run() {
    wanted=$1
    shift
    "$program" "$@" >"$log" 2>&1 </dev/null
    code=$?
    [ "$code" -eq "$wanted" ] || complain "$* exits with $code instead of $wanted"
}

says() {
    grep -q -e "$1" "$log" || complain "it does not say: $1"
}

says_not() {
    ! grep -q -e "$1" "$log" || complain "it says, and should not: $1"
}

# fails_once TEST MESSAGE - it fails, says why, and prints the command that repeats it
fails_once() {
    run 1 "$1"
    says "$2"
    command=$(sed -n 's/^To reproduce: //p' "$log")
    case $command in
    *"WEFT_TEST_SEED="[0-9]*" $program $1") ;;
    *) complain "no line reproduces $1" ;;
    esac
}

# fails TEST MESSAGE - the same, and the command does repeat it
fails() {
    fails_once "$1" "$2"
    sh -c "$command" >"$log" 2>&1 </dev/null && complain "does not fail again: $command"
    says "$2"
    says "To reproduce: $command\$"
}

run 0 passes
run 0 dies_as_it_should
run 2 no_such_test
says 'no test matches'

fails asserts '6 \* 7'
says_not asserts_twice
fails breaks_an_invariant 'this should hold and does not: 1 + 1 == 3'
fails leaks_an_fd 'left file descriptors open: [0-9]* is /dev/null'
fails closes_what_it_did_not_open 'closed file descriptor 0'
fails_once leaves_a_thread 'left 1 threads running' # once: it waits some seconds for the thread to go
fails hangs 'Test timeout expired'
fails does_not_die 'Early exit\|signal'
[ -z "$debug" ] || fails leaks_memory 'left 1 blocks of memory'

# Skipping: everything skipped is 77, some of it is a pass that says so.
run 77 skips
says 'skipped: skips: there are only 2 moons'
run 77 skips skips_a_death
run 0 passes skips
says '1 of 2 skipped'
run 1 asserts skips
"$empty" >"$log" 2>&1
[ $? -eq 77 ] || complain "a program without tests is not skipped"
says 'skipped: none'

# Seeds: a given one is used, rounds differ, and a failure in a late round comes back by its own seed.
WEFT_TEST_SEED=7 run 0 prints_its_seed
says '^seed 7$'
WEFT_TEST_SEED=7 WEFT_TEST_REPEAT=3 run 0 prints_its_seed
[ "$(grep '^seed' "$log" | sort -u | wc -l)" -eq 3 ] || complain "three rounds do not have three seeds"
export WEFT_TEST_REPEAT=100 WEFT_TEST_SEED=1
run 1 fails_for_a_quarter_of_all_seeds
unset WEFT_TEST_REPEAT WEFT_TEST_SEED
command=$(sed -n 's/^To reproduce: //p' "$log")
sh -c "$command" >"$log" 2>&1 && complain "does not fail again: $command"

[ "$failures" -eq 0 ]
