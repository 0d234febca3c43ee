#!/bin/sh
# SPDX-License-Identifier: MIT
# echo.sh ECHO [PYTHON] - the echo server with nc, one after the other and at once; with Python many more, half-closed ones, one that resets; then SIGTERM, and a clean end.
. "$(dirname "$0")/served.sh"
needs nc
python=${2:-}
start "$1" 127.0.0.1:0

says() {
    nc -N 127.0.0.1 "$port"
}
same "$(printf hello | says)" hello
head -c 3000000 "$1" >"$work/big" # every byte, and more than all buffers on the way hold
says <"$work/big" >"$work/heard"
cmp "$work/big" "$work/heard"
for i in 1 2 3 4 5 6 7 8; do
    seq "$i" 20000 | says >"$work/heard.$i" 3<&- &
    clients="${clients:-} $!"
done
for client in $clients; do wait "$client"; done
for i in 1 2 3 4 5 6 7 8; do seq "$i" 20000 | cmp - "$work/heard.$i"; done

[ -n "$python" ] || echo "python3 is not installed: its clients are left out"
[ -z "$python" ] || "$python" - "$port" <<'END'
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

stop_by TERM
