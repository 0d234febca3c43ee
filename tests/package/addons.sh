#!/bin/sh
# SPDX-License-Identifier: MIT
# addons.sh CMAKE SOURCE CC GENERATOR [LIBRARY] - an optional component whose library is not there is left out, and says so; the core needs nothing of the kind.
set -eu
cmake=$1
source=$2
cc=$3
generator=$4
library=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
    printf '%s\n' "FAILED: $*" >&2
    cat "$work/log" >&2
    exit 1
}

# configure FOLDER OPTION...: where pkg-config knows no library at all
configure() {
    folder=$1
    shift
    PKG_CONFIG_LIBDIR=$work PKG_CONFIG_PATH='' "$cmake" -G "$generator" -S "$source" -B "$work/$folder" -DCMAKE_C_COMPILER="$cc" \
        -DWEFT_TESTS=OFF -DWEFT_BENCH=OFF -DWEFT_EXAMPLES=OFF "$@" >"$work/log" 2>&1
}

configure auto || die "without c-ares it does not configure"
grep -q 'weft_cares is left out: .*libcares.*getaddrinfo' "$work/log" || die "it does not say what is missing"
! configure on -DWEFT_WITH_CARES=ON || die "WEFT_WITH_CARES=ON goes on without"
grep -q 'WEFT_WITH_CARES is ON' "$work/log" || die "it does not say why it stops"
configure off -DWEFT_WITH_CARES=OFF || die "WEFT_WITH_CARES=OFF does not configure"
! grep -q 'weft_cares' "$work/log" || die "it talks about what nobody asked for"

[ -n "$library" ] || exit 0
readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' >"$work/log"
[ -s "$work/log" ] || die "$library needs nothing?"
! grep -Ev '^(libc|libpthread|libdl|ld-linux.*)\.so' "$work/log" || die "the core needs more than the C library"
