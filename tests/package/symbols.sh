#!/bin/sh
# SPDX-License-Identifier: MIT
# symbols.sh NM LIBRARY MAP - the library exports what the map lists, no more and no less, and all of it starts with weft_.
set -eu
nm=$1
library=$2
map=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "A" are the map's version names, not code.
"$nm" -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/exported"
# Between "global:" and "local:" every line is one name, without comments.
sed -e 's,/\*.*\*/,,' "$map" | awk '/global:/ { on = 1; next } /local:|}/ { on = 0 } on { gsub(/[ \t;]/, ""); if ($0 != "") print }' |
    sort -u >"$work/listed"

[ -s "$work/listed" ] || { echo "no names found in $map" && exit 1; }
if ! diff "$work/listed" "$work/exported" >"$work/diff"; then
    sed -n -e 's/^< /listed but not in the library: /p' -e 's/^> /in the library but not listed: /p' "$work/diff"
    exit 1
fi
if grep -v '^weft__*[a-z]' "$work/exported"; then
    echo "exported without the prefix weft_"
    exit 1
fi
echo "$(wc -l <"$work/exported") symbols"
