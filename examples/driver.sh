# SPDX-License-Identifier: MIT
# driver.sh - skips a test that asks for a driver which does not work here; sourced. Weft takes the other one then and says so on stderr, and the test would be of that one.
# WEFT_PROBE is any program with a runtime that ends by itself; unset: nothing is asked.
# shellcheck shell=sh
if [ -n "${WEFT_PROBE:-}" ]; then
    denied=$("$WEFT_PROBE" 2>&1 >/dev/null | sed -n 's/^weft: \(.* does not work here: .*\); .*/\1/p')
    [ -z "$denied" ] || { echo "skipped: $denied" && exit 77; }
fi
