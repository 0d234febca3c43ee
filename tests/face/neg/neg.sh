#!/bin/sh
# SPDX-License-Identifier: MIT
# neg.sh INCLUDE - every planted mistake of mistakes.c is diagnosed, by each compiler that is here, in a message that holds the word it expects; and without a
# mistake the file compiles. Warnings count, at the levels that users have. Of mistakes.cc the same, in C++. A number stands for one mistake of its file: of two
# with the same number neither would be tried alone.
set -u
include=$1
here=$(dirname "$0")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
count=0
failures=0

complain() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# FILE -> the list of its mistakes, a number and a word each.
list_of() {
    sed -n 's,.*MISTAKE == \([0-9]*\) /\*.*expect: \(.*\) \*/$,\1 \2,p' "$1" >"$work/list"
    [ -s "$work/list" ] || complain "no mistakes found in $1"
    for number in $(cut -d' ' -f1 "$work/list" | sort | uniq -d); do
        complain "$1 has two mistakes of the number $number"
    done
}

compile() {
    "$compiler" -std="$standard" -O"$level" -Wall -Wextra -Wshadow -Werror -I "$include" -c "$file" -o "$work/o" -DMISTAKE="$1" 2>"$work/message"
}

try_level() {
    compile 0 || { complain "without a mistake, by $compiler -O$level:" && cat "$work/message"; }
    while read -r number word; do
        count=$((count + 1))
        if compile "$number"; then
            complain "$compiler -O$level takes mistake $number of $file"
        elif ! grep -E -q -e "$word" "$work/message"; then
            complain "of mistake $number of $file $compiler -O$level does not say: $word"
            cat "$work/message"
        fi
    done <"$work/list"
}

# try_all FILE STANDARD COMPILER...
try_all() {
    file=$here/$1
    standard=$2
    shift 2
    list_of "$file"
    for compiler; do
        command -v "$compiler" >/dev/null 2>&1 || continue
        for level in 0 2; do try_level; done
    done
}

try_all mistakes.c gnu11 gcc clang-19
try_all mistakes.cc c++17 g++ clang++-19
echo "$count mistakes tried, $failures not diagnosed as they should"
[ "$count" -gt 0 ] && [ "$failures" -eq 0 ]
