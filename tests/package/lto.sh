#!/bin/sh
# SPDX-License-Identifier: MIT
# lto.sh CMAKE ROOT CC GENERATOR - the library built with -flto, static and shared, and programs built with -flto that use either.
# Assembly refers to symbols that a linker with the compiler's help does not see (task/here.h, task/context.c): programs would not link.
# Skipped where the compiler has no such help.
set -eu
cmake=$1
root=$2
cc=$3
generator=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# quietly COMMAND...: what it prints matters only if it fails
quietly() {
    "$@" >log 2>&1 || {
        cat log >&2
        die "failed: $*"
    }
}

# The archiver that can read such objects is the compiler's own.
if "$cc" --version | grep -q clang; then
    ar=$("$cc" --print-prog-name=llvm-ar)
    ranlib=$("$cc" --print-prog-name=llvm-ranlib)
else
    ar=$(command -v gcc-ar || true)
    ranlib=$(command -v gcc-ranlib || true)
fi
command -v "$ar" >/dev/null && command -v "$ranlib" >/dev/null || { echo "skipped: $cc has no archiver for -flto" && exit 77; }
printf 'int main(void) { return 0; }\n' >probe.c
"$cc" -O1 -flto probe.c -o probe >/dev/null 2>&1 || { echo "skipped: $cc cannot link with -flto" && exit 77; }

quietly "$cmake" -G "$generator" -S "$root" -B lib -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="-O1 -flto" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_AR="$(command -v "$ar")" -DCMAKE_RANLIB="$(command -v "$ranlib")" -DWEFT_TESTS=OFF -DWEFT_BENCH=OFF -DWEFT_EXAMPLES=OFF
quietly "$cmake" --build lib --target weft_static weft_shared

for program in skynet recursion; do
    quietly "$cc" -O2 -flto -std=gnu11 -I"$root/include" "$root/examples/$program.c" -o static lib/src/libweft.a -pthread -ldl
    quietly ./static 1000
    for flags in "-O2 -flto" "-O2"; do
        # shellcheck disable=SC2086 # the flags are words
        quietly "$cc" $flags -std=gnu11 -I"$root/include" "$root/examples/$program.c" -o shared lib/src/libweft.so -pthread -Wl,-rpath,"$work/lib/src"
        quietly ./shared 1000
    done
done
echo "the library and its programs link with -flto, and run"
