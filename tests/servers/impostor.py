"""What listens where a server is expected and only wants the password."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from pymysql.constants import CLIENT

from tests.servers.certificates import Certificate

_DENIED = b"\xff" + struct.pack("<H", 1045) + b"#28000Access denied"
_PLUGINS = CLIENT.PROTOCOL_41 | CLIENT.SECURE_CONNECTION | CLIENT.PLUGIN_AUTH


@contextmanager
def impostor(
    asks: bytes, shown: Certificate | None = None, *, capabilities: int = _PLUGINS
) -> Iterator[tuple[int, list[bytes]]]:
    """Listen on a port of 127.0.0.1; yield it, and the packets that clients have sent so far.

    It answers the first packet of a login with `asks`, and the next one with a refusal; `shown` is
    the certificate of its TLS, None for none.
    """
    heard: list[bytes] = []
    context = None
    if shown is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(str(shown.cert), str(shown.key))
        capabilities |= CLIENT.SSL

    def serve(peer: socket.socket) -> None:
        _send(peer, 0, _greeting(capabilities))
        sequence = 2
        if context is not None:
            # Not a byte more: what follows is TLS already.
            _packet(peer)
            peer = context.wrap_socket(peer, server_side=True)
            sequence = 3
        with peer:
            for answer in (asks, _DENIED):
                heard.append(_packet(peer))
                _send(peer, sequence, answer)
                sequence += 2

    def listen() -> None:
        while True:
            peer, _ = listener.accept()
            if ended:
                peer.close()
                return
            with peer, contextlib.suppress(OSError):
                peers.append(peer)
                serve(peer)

    peers: list[socket.socket] = []
    ended: list[bool] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        thread = Thread(target=listen)
        thread.start()
        try:
            yield address[1], heard
        finally:
            ended.append(True)
            for peer in peers:
                # What its client closes may be waiting for the event loop that waits here.
                with contextlib.suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)
            socket.create_connection(address).close()
            thread.join()


def _greeting(capabilities: int) -> bytes:
    """Return protocol 10's first packet."""
    low, high = capabilities & 0xFFFF, capabilities >> 16
    return (
        b"\x0a9.7.0\0" + struct.pack("<I", 1) + b"s" * 8 + b"\0" + struct.pack("<H", low)
        + struct.pack("<BHHB", 255, 2, high, 21) + bytes(10) + b"s" * 12 + b"\0"
        + b"caching_sha2_password\0"
    )  # fmt: skip


def _send(peer: socket.socket, sequence: int, payload: bytes) -> None:
    peer.sendall(len(payload).to_bytes(3, "little") + bytes((sequence,)) + payload)


def _packet(peer: socket.socket) -> bytes:
    return _exactly(peer, int.from_bytes(_exactly(peer, 4)[:3], "little"))


def _exactly(peer: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = peer.recv(size - len(found))
        if not piece:
            raise ConnectionResetError
        found += piece
    return found
