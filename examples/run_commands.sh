#!/bin/sh
# SPDX-License-Identifier: MIT
# run_commands.sh PROGRAM - codes in order, the limit, a command without end that is killed with its children, lines, and ^C.
. "$(dirname "$0")/served.sh"
run=$1
cd "$work"

# shellcheck disable=SC2016
same "$("$run" 'echo one' 'exit 3' 'kill -9 $$' 'cat' && echo well)" "one
exit 0: echo one
exit 3: exit 3
signal 9: kill -9 \$\$
exit 0: cat"
same "$("$run" true true && echo well)" "exit 0: true
exit 0: true
well"
same "$(seq -f 'echo %g' 100 | "$run" -j 10 | grep -v exit)" "$(seq 100)"

# Two at once: they wait for each other in pairs, by FIFOs that open when both are there. And one at a time.
mkfifo a b
same "$("$run" -j 2 'echo >a' 'read -r x <a' 'echo >b' 'read -r x <b' | sort | uniq -c | wc -l | tr -d ' ')" 4
same "$(seq -f 'mkdir one.d || echo two at once; rmdir one.d # %g' 50 | "$run" -j 1 | grep -c '^two')" 0

# Out of time: it is killed, and so is what it started: the FIFO has no writer but ours any more.
mkfifo held
exec 4<>held
same "$("$run" -t 0.3 'exec 3>held; sleep 100000 & wait')" "timeout: exec 3>held; sleep 100000 & wait"
exec 5<held 4>&-
cat <&5
same "$("$run" -t 100000 'echo quick')" "quick
exit 0: echo quick"

# ^C: the same for all of them.
# shellcheck disable=SC2086
env --default-signal=INT ${WEFT_UNDER:-} "$run" 'exec 3>held; sleep 10000' &
server=$!
exec 3<held # it runs
kill -INT "$server"
cat <&3
code=0
wait "$server" || code=$?
server=
same "$code" 130 # by the signal
