#!/bin/sh
# SPDX-License-Identifier: MIT
# dev.sh DEV - what ./dev says when it cannot do what it is asked: one line, and a code that scripts can use.
set -u
dev=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

complain() {
    printf '%s\n' "FAILED: $*" "--- stdout:"
    cat "$work/out"
    echo "--- stderr:"
    cat "$work/err"
    failures=$((failures + 1))
}

# run CODE COMMAND...
run() {
    wanted=$1
    shift
    "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ "$code" -eq "$wanted" ] || complain "$* exits with $code instead of $wanted"
}

one_line_with() {
    [ "$(wc -l <"$work/err")" -eq 1 ] || complain "one line was expected"
    grep -q -e "$1" "$work/err" || complain "it does not say: $1"
    [ ! -s "$work/out" ] || complain "nothing was expected on stdout"
}

run 2 "$dev" nonsense
one_line_with './dev help'

run 0 "$dev" help
for command in demo test release asan tsan model valgrind repeat callgrind bench format lint clean help; do
    grep -q "^  $command" "$work/out" || complain "help does not tell about $command"
done

for often in '' 0 many; do
    run 1 "$dev" repeat $often
    one_line_with 'how often'
done

# A system with a shell and little else, without apt-get: what to install is named.
mkdir "$work/bin"
for program in sh dirname id; do
    ln -s "$(command -v $program)" "$work/bin/$program"
done
run 1 env PATH="$work/bin" "$dev" test
one_line_with 'please install: cc, .*cmake, ninja, .*pkg-config, the Check library'
run 1 env PATH="$work/bin" "$dev" tsan
one_line_with 'clang-19'
run 1 env PATH="$work/bin" "$dev" bench
one_line_with 'python3'

# With an apt-get that does nothing: what is missing is asked for by its package's name, and not having got it is an error.
printf '#!/bin/sh\necho "$@" >>"%s/asked"\n' "$work" >"$work/bin/apt-get"
printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
chmod +x "$work/bin/apt-get" "$work/bin/sudo"
ln -s "$(command -v env)" "$work/bin/env"
run 1 env PATH="$work/bin" "$dev" tsan
grep -q 'dev: installing gcc .*cmake ninja-build .*check .*clang-19' "$work/out" || complain "it does not say what it installs"
grep -q 'install .*gcc .*cmake ninja-build .*check .*clang-19' "$work/asked" || complain "it does not ask apt-get for it"
grep -q 'does not work' "$work/err" || complain "it goes on without what it needs"

[ "$failures" -eq 0 ]
