#!/bin/sh
# SPDX-License-Identifier: MIT
# fiber_cross.sh ROOT - fibers compiled for aarch64 and run under qemu, at -O0 and -O2, with and without landing pads.
# Skipped where the cross compiler or the emulator is missing.
set -eu
root=$1
for program in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v $program >/dev/null || { echo "skipped: $program is missing" && exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
line="weft: fiber 'digger' (spawned at mine.c:42) overflowed its stack of 128 KiB; raise it with .stack_bytes"

for options in "-O0" "-O2" "-O2 -mbranch-protection=standard"; do
    # shellcheck disable=SC2086 # the options are words
    aarch64-linux-gnu-gcc $options -g -D_GNU_SOURCE -static -pthread -fno-strict-aliasing -fno-omit-frame-pointer -iquote "$root/src" -I"$root/include" \
        "$root"/src/base/*.c "$root"/src/sys/*.c \
        $(ls "$root"/src/task/*.c | grep -v '/go\.c$') "$root/tests/package/fiber_cross.c" -o "$work/fiber" 2>"$work/warnings" ||
        { cat "$work/warnings" && exit 1; }
    qemu-aarch64 "$work/fiber"
    if qemu-aarch64 "$work/fiber" overflow 2>"$work/said"; then
        echo "$options: the overflow went unseen" && exit 1
    fi
    grep -qxF "$line" "$work/said" || { echo "$options: it said" && cat "$work/said" && exit 1; }
    echo "$options: fine"
done
