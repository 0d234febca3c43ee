#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh CMAKE BUILD CC CXX PKG_CONFIG GENERATOR - install BUILD into a place of its own, move that place, and use it as a stranger would.
set -eu
cmake=$1
build=$2
cc=$3
cxx=$4
pkg_config=$5
generator=$6
here=$(cd "$(dirname "$0")" && pwd)
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

# The prefix moves after the installation: nothing in it may remember where it was.
quietly "$cmake" --install "$build" --prefix "$work/first"
mv first prefix
prefix=$work/prefix
! grep -r "$work/first" prefix || die "the installation remembers where it was put"

pc=$(find prefix -name weft.pc)
[ -n "$pc" ] || die "no weft.pc was installed"
libdir=$work/$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$libdir/pkgconfig"
version=$("$pkg_config" --modversion weft)

# check PROGRAM yes|no: it prints the version, and it does or does not need libweft.so
check() {
    printed=$(LD_LIBRARY_PATH=$libdir "$1") || die "$1 failed"
    [ "$printed" = "$version" ] || die "$1 prints $printed, weft.pc says $version"
    shared=no
    ! readelf -d "$1" | grep -q 'NEEDED.*libweft' || shared=yes
    [ "$shared" = "$2" ] || die "$1 uses libweft.so: $shared, expected: $2"
}

# What optional components were built is known by what was installed.
addons=
for archive in "$libdir"/libweft_*.a; do
    [ -e "$archive" ] || continue
    name=${archive##*/libweft_}
    addons="${addons:+$addons;}${name%.a}"
done

# with_cmake FOLDER KINDS: through find_package
with_cmake() {
    quietly "$cmake" -G "$generator" -S "$here" -B "$1" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix" \
        -DWANTED="$version" -DKINDS="$2${addons:+;$addons}" -DADDONS="$addons"
    quietly "$cmake" --build "$1"
}

# with_pkg_config PROGRAM [-static]: through pkg-config; its answers are lists of words
with_pkg_config() {
    program=$1
    static=${2:-}
    # shellcheck disable=SC2046
    quietly "$cc" -std=c11 -c "$here/consumer.c" -o c.o $("$pkg_config" --cflags weft)
    # shellcheck disable=SC2046
    quietly "$cxx" -std=c++17 -c "$here/consumer_cxx.cpp" -o cxx.o $("$pkg_config" --cflags weft)
    # shellcheck disable=SC2046
    quietly "$cxx" c.o cxx.o -o "$program" ${static:+-static} $("$pkg_config" ${static:+--static} --libs weft)
}

with_cmake both "static;shared"
check both/consumer_static no
check both/consumer_shared yes
check both/consumer_weft yes
for addon in $(echo "$addons" | tr ';' ' '); do
    check "both/consumer_$addon" yes
    # shellcheck disable=SC2046
    quietly "$cc" -std=gnu11 "$here/consumer_$addon.c" -o "pc_$addon" $("$pkg_config" --cflags --libs "weft-$addon")
    check "./pc_$addon" yes
done
with_pkg_config pc_shared
check ./pc_shared yes
with_pkg_config pc_static -static
check ./pc_static no

# Where only the static library is installed, weft::weft is that one, and asking for the other is an error.
rm "$libdir"/libweft.so* "$libdir"/cmake/weft/weftShared*.cmake
with_cmake static_only static
check static_only/consumer_weft no
if "$cmake" -G "$generator" -S "$here" -B none -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix" \
    -DWANTED="$version" -DKINDS=shared >log 2>&1; then
    die "find_package finds a shared library that is not there"
fi
echo "weft $version installs, moves, and links both ways${addons:+, with $addons}"
