#!/bin/sh
# SPDX-License-Identifier: MIT
# chat.sh CHAT - the room with nc: names, everybody hears, leaves are announced; one that does not read holds up nobody, and is told what it missed.
. "$(dirname "$0")/served.sh"
needs nc awk
start "$1" 127.0.0.1:0

# No client may hold another one's pipes open: they would wait for each other's ends.
# enter NAME: its input is $work/NAME.in, what it hears is $work/NAME.out.
enter() {
    mkfifo "$work/$1.in" "$work/$1.out"
    nc -N 127.0.0.1 "$port" <"$work/$1.in" >"$work/$1.out" 3<&- 4>&- 5<&- 6>&- 7<&- 8<&- 9>&- &
}
hears() { # FD LINE...
    fd=$1
    got=
    shift
    for want in "$@"; do
        eval "IFS= read -r got <&$fd" || fail "the client of fd $fd is gone"
        same "$got" "$want"
    done
}

enter ann
exec 4>"$work/ann.in" 5<"$work/ann.out"
hears 5 '* your name?'
echo ann >&4
hears 5 '* ann is here'

enter bob
exec 6>"$work/bob.in" 7<"$work/bob.out"
printf 'bob\r\nhello\n\n' >&6
hears 7 '* your name?' '* bob is here' '<bob> hello'
hears 5 '* bob is here' '<bob> hello'
exec 6>&-
hears 5 '* bob has left'

# Slow enters, and does not read while ann says a lot. Fast reads it all, and hears the last word.
enter slow
exec 6>"$work/slow.in" 8<"$work/slow.out"
echo slow >&6
hears 5 '* slow is here'
enter fast
exec 9>"$work/fast.in"
echo fast >&9
grep -m 1 -F '<ann> the last word' "$work/fast.out" >"$work/fast.heard" 3<&- 4>&- 5<&- 6>&- 7<&- 8<&- 9>&- &
fast=$!
hears 5 '* fast is here'
cat <&5 >"$work/ann.heard" 3<&- 4>&- 6>&- 7<&- 8<&- 9>&- &
lines=30000
{
    seq -f 'this is line number %g of many, and nobody has to wait for anybody' "$lines"
    echo 'the last word'
} >&4
wait "$fast" || fail "fast has not heard the last word"

# Now slow reads: what it heard and what it missed is all there was.
sed '/the last word/q' <&8 | awk -v lines="$lines" '
    /^<ann> this is/ { heard++ }
    /^\* you missed/ { missed += $4 }
    END { print (missed > 0 ? "missed some" : "missed none"), (heard + missed >= lines ? "and knows it" : "and does not know") }
' >"$work/verdict"
same "$(cat "$work/verdict")" "missed some and knows it"
stop
exec 4>&- 5<&- 6>&- 8<&- 9>&-
wait
