#!/bin/sh
# SPDX-License-Identifier: MIT
# cases.sh WEFT_BENCH [PREFIX] - every case of weft, small, on the current-thread runtime and on two workers: it ends, and its checksum is
# the one that all sides have. Times are not looked at. Cases that begin with PREFIX are left out.
set -u
program=$1
left_out=${2:-none}
failures=0

complain() {
    printf '%s\n' "FAILED: $*"
    failures=$((failures + 1))
}

small() { # CASE: an N that takes no time
    case $1 in
    fib) echo 12 ;;
    skynet*) echo 1000 ;; # a power of ten
    mem_fiber) echo 200 ;;
    mutex) echo 5 ;;
    *) echo 2000 ;;
    esac
}

expected() { # CASE N
    case $1 in
    fib) echo 144 ;;
    spawn_join | join_all | ping_pong* | blocking | mpsc | skynet*) echo $(($2 * ($2 - 1) / 2)) ;;
    blocking16) echo $(($2 / 16 * ($2 / 16 - 1) / 2 * 16)) ;;
    mpsc4 | mpmc) echo $(($2 / 4 * ($2 / 4 - 1) / 2 * 4)) ;;
    switch*) echo $((2 * $2)) ;;
    yield*) echo 1000000 ;; # together
    mutex) echo $(($2 * 10000)) ;;
    timer_churn) echo 500000 ;; # beside N others
    file_read) echo 254003 ;; # of these 2000 pages
    file_read8) echo 256708 ;;
    file_read64) echo 252258 ;;
    *) echo "$2" ;;
    esac
}

for case in blocking blocking16 chained fib file_read file_read8 file_read64 join_all mem_fiber mem_sleep mem_wait mpmc mpsc mpsc4 mutex ping_pong ping_pong_chan skynet skynet_fiber sleep_error spawn spawn_fiber spawn_join \
    spawn_remote switch switch_fiber tasks100k timer_churn timer_many yield yield_fiber; do
    "$program" --list | grep -qx "$case" || complain "there is no case $case"
done
for case in $("$program" --list); do
    case $case in "$left_out"*) continue ;; esac
    for workers in 0 2; do
        n=$(small "$case")
        said=$("$program" "$case" "$workers" "$n" 2>&1 >/dev/null) || complain "$case $workers $n exits with $?"
        [ "$said" = "checksum $case $(expected "$case" "$n")" ] || complain "$case $workers $n says: $said"
    done
done
[ "$failures" -eq 0 ]
