"""Makes the connections of ssh, as its ProxyCommand, to a port of a test machine: `relay.py ADDRESS PORT`, inside the
network. The connection is handed over (ProxyUseFdpass): from then on it is as if ssh had made it itself.

It starts for every connection, so it imports next to nothing."""

from __future__ import annotations

import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket  # `socket` imports for longer than the rest of this takes

PATIENCE = 5  # seconds, as ssh has them (ConnectTimeout): it waits for us without an end


def main(host: str, port: str) -> int:
    if not host.replace(".", "").isdigit():  # nobody answers for names in there, and asking takes seconds
        return failed(f"Could not resolve hostname {host}: Name or service not known")
    connection = socket()
    connection.settimeout(PATIENCE)
    try:
        connection.connect((host, int(port)))
    except TimeoutError:
        return failed(f"connect to host {host} port {port}: Connection timed out")
    except OSError as error:
        return failed(f"connect to host {host} port {port}: {error.strerror}")
    connection.settimeout(None)
    passed = (SOL_SOCKET, SCM_RIGHTS, connection.fileno().to_bytes(4, sys.byteorder))
    socket(AF_UNIX, fileno=1).sendmsg([b"\0"], [passed])
    return 0


def failed(why: str) -> int:
    """In the words of ssh, because programs read them."""
    sys.stderr.write(f"ssh: {why}\r\n")
    return 255


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
