"""Splits the bytes of a connection into packets of the client/server protocol, without I/O.

A packet is its length (u24), its sequence number (u8) and its payload; a payload of 2^24-1 bytes
continues in the next packet (MySQL internals manual, "MySQL Packets").
"""

from collections.abc import Callable
from typing import Final

from mtsd.model.errors import BinlogError

# Final: compiled code inlines the number.
_FULL: Final = 0xFFFFFF
_MUCH: Final = 1 << 20
_SEMI_SYNC: Final = 0xEF
_SEMI_SYNC_HEAD: Final = 2
_AFTER_WANTED: Final = 1
"""The number of the next packet: the acknowledgement has number 0, and the source does not wait."""
_END_AT: Final = 13
MAX_PAYLOAD = (1 << 30) + 64
"""Bytes: one event of the largest max_allowed_packet, and the bytes before it."""


class PacketFramer:
    """Splits the bytes of one direction of a connection into payloads."""

    __slots__ = (
        "_head", "_joined", "_joined_size", "_needed", "_parts", "_sequence", "_status",
        "_waiting", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        sequence: int,
        status: Callable[[bytes], bytes] | None = None,
        *,
        semi_sync: bool = False,
    ) -> None:
        """`sequence` is the number that the next packet must have.

        With `status`, a payload that begins with 0x00 (OK) is returned without that byte, and any
        other is passed through `status`. With `semi_sync`, 0xEF and a flag follow that byte, which
        are left out as well (MySQL's documentation of its source, "semisync.h").
        """
        self._sequence = sequence
        self._status = status
        self._head = 1 + _SEMI_SYNC_HEAD if semi_sync else 1
        self.wanted: list[int] = []
        """The ends of the events that the source wants acknowledged, modulo 2^32: whoever takes
        them empties it."""
        self._parts: list[bytes | memoryview] = []
        self._waiting = 0
        self._needed = 4
        self._joined: list[bytes] = []
        self._joined_size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the payloads that `piece` completes.

        Raises BinlogError on a wrong sequence number or a payload larger than `MAX_PAYLOAD`.
        """
        parts = self._parts
        missing = self._needed - self._waiting
        payloads: list[bytes] = []
        if missing > len(piece):
            parts.append(piece)
            self._waiting += len(piece)
            return payloads
        at = 0
        if self._waiting >= 4:
            # Only the packet that began before is reassembled, not everything that has arrived.
            parts.append(memoryview(piece)[:missing])
            self._cut(b"".join(parts), 0, payloads)
            at = missing
        elif parts:
            parts.append(piece)
            piece = b"".join(parts)
        at = self._cut(piece, at, payloads)
        # A large packet is copied only when all of it is there.
        self._waiting = len(piece) - at
        self._parts = [memoryview(piece)[at:]] if self._waiting else []
        return payloads

    def joins_much(self, size: int) -> bool:
        """Return whether `feed` would copy much if it got a piece of that size, in bytes."""
        return self._needed > _MUCH and self._waiting + size >= self._needed

    def _cut(self, data: bytes, at: int, payloads: list[bytes]) -> int:
        """Append the payloads of whole packets from `at` on; return where the rest begins."""
        sequence = self._sequence
        joined = self._joined
        status = self._status
        head = self._head
        end = len(data)
        self._needed = 4
        while end - at >= 4:
            size = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            body = at + 4
            stop = body + size
            if stop > end:
                self._needed = size + 4
                break
            number = data[at + 3]
            if number != sequence:
                raise BinlogError(
                    f"packet number {number} instead of {sequence}: the stream is damaged"
                )
            sequence = (sequence + 1) & 0xFF
            at = stop
            if status is not None and size and not data[body] and size != _FULL and not joined:
                if head > 1 and self._is_wanted(data[body + 1 : stop]):
                    sequence = _AFTER_WANTED
                payloads.append(data[body + head : stop])
                continue
            payload = data[body:stop]
            if status is not None and not joined:
                payload = status(payload)
            if size == _FULL or joined:
                self._join(payload)
                if size == _FULL:
                    continue
                payload = b"".join(joined)
                joined.clear()
                self._joined_size = 0
                if head > 1:
                    if self._is_wanted(payload):
                        sequence = _AFTER_WANTED
                    payload = payload[_SEMI_SYNC_HEAD:]
            payloads.append(payload)
        self._sequence = sequence
        return at

    def _is_wanted(self, payload: bytes) -> bool:
        """Return, and note, whether the source wants an event acknowledged: it has two bytes more.

        Raises BinlogError if it lacks them.
        """
        end = _SEMI_SYNC_HEAD + _END_AT
        if len(payload) < end + 4 or payload[0] != _SEMI_SYNC:
            raise BinlogError("a packet without its semi-sync header: the stream is damaged")
        if not payload[1]:
            return False
        self.wanted.append(int.from_bytes(payload[end : end + 4], "little"))
        return True

    def _join(self, payload: bytes) -> None:
        self._joined.append(payload)
        self._joined_size += len(payload)
        if self._joined_size > MAX_PAYLOAD:
            raise BinlogError(f"a packet larger than {MAX_PAYLOAD} bytes: the stream is damaged")
