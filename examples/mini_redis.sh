#!/bin/sh
# SPDX-License-Identifier: MIT
# mini_redis.sh SERVER - the server with redis-cli and redis-benchmark, and with nc for what those never say.
. "$(dirname "$0")/served.sh"
needs redis-cli redis-benchmark nc
start "$1" 127.0.0.1:0

cli() {
    redis-cli -p "$port" "$@"
}
raw() { # TEXT: its answers, with spaces for line ends
    # shellcheck disable=SC2059  # it is a format, for its \r\n
    printf "$1" | nc -N 127.0.0.1 "$port" | tr -s '\r\n' '  '
}

same "$(cli ping)" PONG
same "$(cli echo 'two words')" "two words"
same "$(cli get nothing)" ""
same "$(cli set greeting hello)" OK
same "$(cli get greeting)" hello
same "$(cli set greeting again NX)" ""
same "$(cli set other again XX)" ""
same "$(cli set greeting again XX)" OK
same "$(cli get greeting)" again
same "$(cli exists greeting other)" 1
same "$(cli incr n)" 1
same "$(cli incrby n 41)" 42
same "$(cli decr n)" 41
cli incr greeting | grep -q 'not an integer' || fail "a word was counted up"
same "$(cli del greeting n other)" 2
same "$(cli dbsize)" 0
cli nonsense | grep -q 'unknown command' || fail "it knows nonsense"
cli get | grep -q 'wrong number' || fail "get what?"
cli set a b EX 0 | grep -q 'invalid expire' || fail "it took an expiry of 0"

# Expiry. Hours are not looked at exactly, and of a millisecond only that it ends.
same "$(cli set hours 1 EX 100000)" OK
[ "$(cli ttl hours)" -gt 90000 ] || fail "it expires too soon"
same "$(cli ttl nothing)" -2
same "$(cli set soon 1 PX 1)" OK
until [ -z "$(cli get soon)" ]; do :; done
same "$(cli set soon 1)" OK
same "$(cli ttl soon)" -1
same "$(cli pexpire soon 1)" 1
until [ "$(cli exists soon)" = 0 ]; do :; done
same "$(cli expire nothing 1)" 0
same "$(cli set by_set 1 EX 1)" OK # whole seconds, by both ways at once
same "$(cli set by_expire 1)" OK
same "$(cli expire by_expire 1)" 1
until [ -z "$(cli get by_set)" ]; do :; done
until [ "$(cli exists by_expire)" = 0 ]; do :; done
same "$(cli ttl by_expire)" -2

# A value of a megabyte with every byte in it, there and back.
head -c 1000000 "$1" >"$work/big"
same "$(cli -x set big <"$work/big")" OK
cli get big | head -c 1000000 | cmp - "$work/big"

# By hand: lines of words, commands in one piece, cut in the middle, and nonsense.
# shellcheck disable=SC2016
same "$(raw 'PING\r\n\r\nset  a 1\r\nINCR a\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*2\r\n$3\r\nGET\r\n$1')" "+PONG +OK :2 \$0 "
same "$(raw '*1\r\n+PING\r\n')" "-ERR Protocol error "
same "$(raw '*9999999\r\n')" "-ERR Protocol error "
same "$(raw 'QUIT\r\nPING\r\n')" "+OK "

# Channels.
mkfifo "$work/heard"
cli subscribe news weather >"$work/heard" &
reader=$!
exec 4<"$work/heard"
hears() {
    for want in "$@"; do
        IFS= read -r got <&4 || fail "the subscriber is gone"
        same "$got" "$want"
    done
}
hears subscribe news 1 subscribe weather 2
same "$(cli publish news 'first one')" 1
same "$(cli publish sports nobody)" 0
same "$(cli publish weather rain)" 1
hears message news 'first one' message weather rain
same "$(raw 'SUBSCRIBE a b\r\nGET a\r\nPING\r\nUNSUBSCRIBE\r\nGET a\r\n' | tr -d '\n' | grep -o 'unsubscribe' | wc -l | tr -d ' ')" 2

# One that listens and never reads holds up nobody: it is cut off.
mkfifo "$work/says" "$work/unread"
nc 127.0.0.1 "$port" <"$work/says" >"$work/unread" &
exec 5>"$work/says" 6<"$work/unread"
echo 'SUBSCRIBE flood' >&5
IFS= read -r got <&6
redis-benchmark -p "$port" -q -n 2000 publish flood "$(head -c 20000 /dev/zero | tr '\0' x)" >/dev/null
until [ "$(cli publish flood more)" = 0 ]; do :; done

# Many at once, and pipelined; then everything that was counted is there.
same "$(cli flushall)" OK
redis-benchmark -p "$port" -q -c 20 -n 2000 -P 8 -r 100 -t ping,set,get >"$work/benchmark"
redis-benchmark -p "$port" -q -c 20 -n 2000 incr counter >>"$work/benchmark"
! grep -i error "$work/benchmark" || fail "$(cat "$work/benchmark")"
same "$(cli get counter)" 2000

# The end comes while somebody listens.
stop
wait "$reader" || true
