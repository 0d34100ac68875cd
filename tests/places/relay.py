"""Stands between ssh, as its ProxyCommand, and a port of a test machine: `relay.py ADDRESS PORT`, inside the network.

It starts for every connection, so it imports next to nothing. When ssh ends it ends, at once: what is left of the
connection is then the kernel's, as it would be for an ssh that had made it itself."""

from __future__ import annotations

import os
import select
import sys
from _socket import (
    IPPROTO_TCP,
    TCP_NODELAY,
    socket,
)  # not `socket`: that one imports for longer than the rest of this takes

SIZE = 1 << 17


def main(host: str, port: str) -> int:
    if not host.replace(".", "").isdigit():  # nobody answers for names in there, and asking takes seconds
        return failed(f"Could not resolve hostname {host}: Name or service not known")
    connection = socket()
    connection.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)  # as ssh does: small packets would wait 40 ms for each other
    try:
        connection.connect((host, int(port)))
    except OSError as error:
        return failed(f"connect to host {host} port {port}: {error.strerror}")
    try:
        carry(connection)
    except OSError:
        return 1  # reset, or timed out: ssh sees the end of its stream, and says so
    return 0


def failed(why: str) -> int:
    """In the words of ssh, because programs read them."""
    sys.stderr.write(f"ssh: {why}\r\n")
    return 255


def carry(connection: socket) -> None:
    connection.setblocking(False)
    there, unsent = connection.fileno(), b""
    streams = select.poll()
    while True:
        # Of an ssh that has ended poll tells in any case, also while a cut line takes nothing more.
        streams.register(0, 0 if unsent else select.POLLIN)
        streams.register(there, select.POLLIN | select.POLLOUT if unsent else select.POLLIN)
        for ready, events in streams.poll():
            if ready == 0:
                unsent = os.read(0, SIZE) if events & select.POLLIN else b""
                if not unsent:
                    return
            elif events & select.POLLOUT:
                unsent = unsent[os.write(there, unsent) :]
            else:
                received = os.read(there, SIZE)
                if not received:
                    return
                while received:
                    received = received[os.write(1, received) :]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
