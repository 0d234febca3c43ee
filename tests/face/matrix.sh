#!/bin/sh
# SPDX-License-Identifier: MIT
# matrix.sh SOURCE-DIR - the programs of tests/face at every level of optimisation, by each compiler that is here, warnings being errors: bodies that
# jump into their own middle are where optimisers differ. -std=c11 and link-time optimisation once each; then C++17.
set -u
root=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$root" || exit 1
warn="-Wall -Wextra -Wshadow -Werror"
more="-Wconversion -Wno-sign-conversion -Wmissing-prototypes -Wstrict-prototypes -Wcast-align -Wpointer-arith -Wundef -Wvla"
runs=0
failures=0

failed() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# build_and_run COMPILER OUTPUT FLAGS... : what links and exits with 0
build_and_run() {
    compiler=$1
    shift
    runs=$((runs + 1))
    # shellcheck disable=SC2086
    "$compiler" -g -Iinclude -iquote src -D_GNU_SOURCE $warn "$@" -o "$work/program" && "$work/program" || failed "$compiler $*"
}

behind="src/task/frame.c src/base/assert.c tests/face/standin.c"
for compiler in gcc clang-19; do
    command -v "$compiler" >/dev/null 2>&1 || continue
    for flags in "-std=gnu11 -O0 $more" "-std=gnu11 -O1" "-std=gnu11 -O2 $more" "-std=gnu11 -O3" "-std=gnu11 -Os" "-std=c11 -O2 -DWEFT_DEBUG=1" \
        "-std=gnu2x -O2 -fPIC -flto" "-std=gnu11 -O2 -fno-pie -no-pie -Wno-unused-command-line-argument -fstack-protector-all -fcf-protection=full"; do
        for part in $behind; do
            # shellcheck disable=SC2086
            "$compiler" -g -Iinclude -iquote src -D_GNU_SOURCE $flags -c "$part" -o "$work/$(basename "$part").o" || failed "$compiler $flags $part"
        done
        for program in tests/face/*.c; do
            case $program in */standin.c) continue ;; esac
            # shellcheck disable=SC2086
            build_and_run "$compiler" $flags "$program" "$work"/*.c.o
        done
        for program in tests/face/library/*.c; do # needs the library to run: tests/face/CMakeLists.txt
            # shellcheck disable=SC2086
            "$compiler" -g -Iinclude -iquote tests/face -D_GNU_SOURCE $warn $flags -c "$program" -o "$work/library.o" || failed "$compiler $flags $program"
        done
    done
done
for compiler in g++ clang++-19; do
    command -v "$compiler" >/dev/null 2>&1 || continue
    for flags in "-std=c++17 -O0" "-std=gnu++17 -O2" "-std=c++20 -O2"; do
        for part in $behind; do
            gcc -std=gnu11 -g -Iinclude -iquote src -D_GNU_SOURCE -O1 -c "$part" -o "$work/$(basename "$part").o" || failed "$part"
        done
        # shellcheck disable=SC2086
        build_and_run "$compiler" $flags tests/face/calls.cc "$work"/*.c.o
        # shellcheck disable=SC2086
        "$compiler" -g -Iinclude $warn $flags -c tests/face/library/calls.cc -o "$work/library.o" || failed "$compiler $flags calls.cc of the library"
    done
done
echo "$runs programs built and run, $failures failed"
[ "$runs" -gt 0 ] && [ "$failures" -eq 0 ]
