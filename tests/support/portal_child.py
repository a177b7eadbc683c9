"""A stand-in for the portal's process, as light as can be: it says who it is and what it was asked.

GET /pid        its process id            GET /die     ends at once, with exit code 3
GET /idle       ends as the portal does after ten idle minutes
POST /…         how many bytes came, and the head     an upgrade: echoes whatever comes
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading


def serve(client: socket.socket) -> None:
    stream = client.makefile("rb")
    while True:
        lines = []
        while (line := stream.readline()) not in (b"\r\n", b""):
            lines.append(line.decode("latin-1").strip())
        if not lines:
            client.close()
            return
        target = lines[0].split(" ")[1]
        headers = dict(one.split(": ", 1) for one in lines[1:])
        if headers.get("upgrade") == "websocket":
            client.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            while data := client.recv(65_536):
                client.sendall(data)
            return
        if target == "/die":
            os._exit(3)
        if target == "/idle":
            client.close()
            os._exit(0)
        left = int(headers.get("content-length", 0))
        came = 0
        while left and (data := stream.read(min(left, 65_536))):
            left -= len(data)
            came += len(data)
        said = {"pid": os.getpid(), "target": target, "bytes": came, "headers": headers}
        body = json.dumps(said).encode()
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def accept(listener: socket.socket) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


if __name__ == "__main__":
    told = json.loads(sys.stdin.readline())
    if told["key"] == "broken":
        sys.exit(7)
    listener = socket.socket(fileno=told["fd"])
    threading.Thread(target=accept, args=(listener,), daemon=True).start()
    sys.stdin.read()
