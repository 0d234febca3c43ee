#!/bin/sh
# SPDX-License-Identifier: MIT
# echo.sh ECHO PYTHON - the echo server with a real client: many connections at once, half-closed ones, one that resets; then SIGTERM, and a clean end.
set -eu
echo_server=$1
python=$2
work=$(mktemp -d)
"$echo_server" 127.0.0.1:0 >"$work/out" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

tries=0
until grep -q 'listening at' "$work/out"; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || { echo "FAILED: it does not listen" && exit 1; }
    sleep 0.1
done
port=$(sed -n 's/^listening at .*:\([0-9]*\)$/\1/p' "$work/out")

"$python" - "$port" <<'END'
import socket
import struct
import sys

port = int(sys.argv[1])
clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
for number, client in enumerate(clients):
    client.sendall(b"%d " % number * 1000)
for number, client in enumerate(clients):
    if number % 2:
        client.shutdown(socket.SHUT_WR)  # what was sent still comes back, and then the end
    want = b"%d " % number * 1000
    got = b""
    while len(got) < len(want):
        part = client.recv(65536)
        assert part, "the end came too early"
        got += part
    assert got == want, number
    if number % 2:
        assert client.recv(1) == b""
reset = socket.create_connection(("127.0.0.1", port))
reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
reset.sendall(b"x" * 100000)
reset.close()
last = socket.create_connection(("127.0.0.1", port))
last.sendall(b"still there?")
assert last.recv(100) == b"still there?"
print("echoed")
END

kill -TERM "$server" # not INT: a shell has what runs in its background ignore that
code=0
wait "$server" || code=$?
[ "$code" -eq 0 ] || { echo "FAILED: it exits with $code" && exit 1; }
