#!/bin/sh
# SPDX-License-Identifier: MIT
# expect.sh LINE... -- PROGRAM [ARGS]: it ends well, and among what it prints are these lines (extended regular expressions).
set -u
. "$(dirname "$0")/driver.sh"
lines=
while [ "$1" != -- ]; do
    lines="$lines$1
"
    shift
done
shift
out=$("$@") || {
    echo "FAILED: $* exits with $?"
    exit 1
}
printf '%s\n' "$out"
failures=0
while IFS= read -r line; do
    [ -z "$line" ] || printf '%s\n' "$out" | grep -Eqx -e "$line" || {
        echo "FAILED: no line is: $line"
        failures=$((failures + 1))
    }
done <<END
$lines
END
[ "$failures" -eq 0 ]
