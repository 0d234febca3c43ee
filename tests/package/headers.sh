#!/bin/sh
# SPDX-License-Identifier: MIT
# headers.sh INCLUDE CC [INCLUDE...] - every public header compiles alone, and twice in a row, as C11 and as C++17, by each compiler that is here.
set -eu
include=$1
cc=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
failed=0

# try COMPILER LANGUAGE STANDARD HEADER
try() {
    command -v "$1" >/dev/null 2>&1 || return 0
    count=$((count + 1))
    "$1" -x "$2" -std="$3" -fsyntax-only -Wall -Wextra -Wshadow -Wpedantic -Wundef -Werror -I "$include" -I "$folder" "$work/one" && return 0
    echo "<$4> does not compile as $3 by $1"
    failed=$((failed + 1))
}

for folder in "$include" "$@"; do for path in "$folder"/weft/*.h; do
    header=weft/$(basename "$path")
    printf '#include <%s>\n#include <%s>\nint a_file_has_a_declaration;\n' "$header" "$header" >"$work/one"
    for compiler in "$cc" gcc clang-19; do
        try "$compiler" c c11 "$header"
    done
    for compiler in g++ clang++-19; do
        try "$compiler" c++ c++17 "$header"
    done
done; done
echo "$count compilations, $failed failed"
[ "$count" -gt 0 ] && [ "$failed" -eq 0 ]
