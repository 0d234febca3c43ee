#!/bin/sh
# SPDX-License-Identifier: MIT
# proxy.sh PROXY PYTHON - 64 megabytes through the proxy, both ways at once, with half-close; sides that reset; nobody upstream. WEFT_PROXY_MB: fewer.
. "$(dirname "$0")/served.sh"
proxy=$1
python=$2
cat >"$work/peer.py" <<'END'
import hashlib
import os
import socket
import struct
import sys
import threading

MB = int(os.environ.get("WEFT_PROXY_MB", "64"))


def say(*words):
    print(*words, flush=True)


def talk(s, seed):
    """Sends MB megabytes and the end of them, and reads meanwhile up to the end: what was sent, and what was heard."""
    sent, heard = hashlib.sha256(), hashlib.sha256()
    block = bytes((i * seed) % 251 for i in range(1 << 20))

    def send():
        for i in range(MB):
            piece = block[i:] + block[:i]
            sent.update(piece)
            s.sendall(piece)
        s.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    while part := s.recv(1 << 18):
        heard.update(part)
    sender.join()
    return sent.hexdigest(), heard.hexdigest()


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


upstream = socket.create_server(("127.0.0.1", 0))
say("%d" % upstream.getsockname()[1])
port = int(sys.stdin.readline())


def connected():
    a = socket.create_connection(("127.0.0.1", port))
    return a, upstream.accept()[0]


a, b = connected()
answers = []
other = threading.Thread(target=lambda: answers.append(talk(b, 7)))
other.start()
a_sent, a_heard = talk(a, 5)
other.join()
b_sent, b_heard = answers[0]
assert a_sent == b_heard and b_sent == a_heard, "what came out is not what went in"

a, b = connected()  # half-close: the answer comes behind the end of the question
a.sendall(b"question")
a.shutdown(socket.SHUT_WR)
assert b.recv(100) == b"question" and b.recv(100) == b""
b.sendall(b"answer")
b.close()
assert a.recv(100) == b"answer" and a.recv(100) == b""

for who in 0, 1:  # one side resets: the other one does not wait for ever
    pair = connected()
    pair[who].sendall(b"x")
    assert pair[1 - who].recv(1) == b"x"
    reset(pair[who])
    try:
        assert pair[1 - who].recv(1) == b""
    except ConnectionResetError:
        pass

upstream.close()  # nobody upstream: the client hears the end
a = socket.create_connection(("127.0.0.1", port))
try:
    assert a.recv(1) == b""
except ConnectionResetError:
    pass
say("done")
END
mkfifo "$work/to" "$work/from"
"$python" "$work/peer.py" <"$work/to" >"$work/from" &
peer=$!
exec 4>"$work/to" 5<"$work/from"
IFS= read -r upstream <&5 || fail "no peer"
start "$proxy" 127.0.0.1:0 "127.0.0.1:$upstream"
echo "$port" >&4
IFS= read -r verdict <&5 || fail "the peer has failed"
same "$verdict" "done"
wait "$peer"
stop
