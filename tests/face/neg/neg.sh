#!/bin/sh
# SPDX-License-Identifier: MIT
# neg.sh INCLUDE - every planted mistake of mistakes.c is diagnosed, by each compiler that is here, in a message that holds the word it expects; and without a
# mistake the file compiles. Warnings count, at the levels that users have.
set -u
include=$1
file=$(dirname "$0")/mistakes.c
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
count=0
failures=0

sed -n 's,.*MISTAKE == \([0-9]*\) /\*.*expect: \(.*\) \*/$,\1 \2,p' "$file" >"$work/list"
[ -s "$work/list" ] || { echo "no mistakes found in $file" && exit 1; }

for compiler in gcc clang-19; do
    command -v "$compiler" >/dev/null 2>&1 || continue
    for level in 0 2; do
        compile() {
            "$compiler" -std=gnu11 -O$level -Wall -Wextra -Wshadow -Werror -I "$include" -c "$file" -o "$work/o" -DMISTAKE="$1" 2>"$work/message"
        }
        compile 0 || { echo "FAILED: without a mistake, by $compiler -O$level:" && cat "$work/message" && failures=$((failures + 1)); }
        while read -r number word; do
            count=$((count + 1))
            if compile "$number"; then
                echo "FAILED: $compiler -O$level takes mistake $number"
            elif ! grep -E -q -e "$word" "$work/message"; then
                echo "FAILED: of mistake $number $compiler -O$level does not say: $word"
                cat "$work/message"
            else
                continue
            fi
            failures=$((failures + 1))
        done <"$work/list"
    done
done
echo "$count mistakes tried, $failures not diagnosed as they should"
[ "$count" -gt 0 ] && [ "$failures" -eq 0 ]
