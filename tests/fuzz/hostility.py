"""What a hostile server, or somebody in between, makes of the packets that a server sends.

For a `Proxy`: each connection has a stream of its own, which changes few or many of its packets.
All of it follows from the seed and the packets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final

_RATES: Final = (0.002, 0.02, 0.05, 0.2, 0.6)
"""How many of a connection's packets are changed."""
_CALM: Final = (0, 0, 3, 10, 30, 100)
"""How many of its first packets are not: a greeting and a login take two or three."""
_LARGEST: Final = 1 << 20
"""Bytes: a larger packet is passed on as it is."""
_ERRORS: Final = (0, 1, 1045, 1053, 1062, 1064, 1146, 1205, 1213, 1236, 1290, 1837, 3101, 65535)
_OK: Final = b"\0\0\0\2\0\0\0"
_ENDLESS: Final = 3


class Hostility:
    """What one server is made to do; `changes` is for its proxy."""

    def __init__(self, seed: str, *, endless: int = _ENDLESS) -> None:
        """`endless`: by how many packets of 16 MiB an answer is blown up."""
        self.on = True
        self.endless = endless
        self.done: dict[str, int] = {}
        """How often what was done."""
        self._chance = Random(seed)
        self._seen: deque[bytes] = deque(maxlen=400)

    def changes(self) -> Callable[[bytes], bytes]:
        """Return what changes the packets of the next connection."""
        chance = Random(self._chance.random())
        return _Stream(self, chance, chance.choice(_RATES), chance.choice(_CALM)).take

    def changed(self, chance: Random, sequence: int, payload: bytes) -> list[bytes]:
        """Return what is sent instead of a packet, framed."""
        ways = (
            self._flipped, self._flipped, self._cut, self._empty, self._header, self._twice,
            self._other, self._other, self._invented, self._invented, self._values, self._values,
            self._inflated, self._left_out,
        )  # fmt: skip
        way = chance.choice(ways)
        name = way.__name__.strip("_")
        self.done[name] = self.done.get(name, 0) + 1
        return way(chance, sequence, payload)

    def see(self, payload: bytes) -> None:
        """Note what may be sent again later."""
        self._seen.append(payload)

    def _flipped(self, chance: Random, sequence: int, payload: bytes) -> list[bytes]:
        changed = bytearray(payload or b"\0")
        for _ in range(chance.choice((1, 1, 2, 10))):
            changed[chance.randrange(len(changed))] = chance.choice((0, 0xFB, 0xFF, 0x7F, 1))
        return [_framed(sequence, bytes(changed))]

    def _cut(self, chance: Random, sequence: int, payload: bytes) -> list[bytes]:
        return [_framed(sequence, payload[: chance.randrange(len(payload) + 1)])]

    def _empty(self, _: Random, sequence: int, __: bytes) -> list[bytes]:
        return [_framed(sequence, b"")]

    def _header(self, chance: Random, sequence: int, payload: bytes) -> list[bytes]:
        framed = bytearray(_framed(sequence, payload))
        framed[chance.randrange(4)] = chance.randrange(256)
        return [bytes(framed)]

    def _twice(self, chance: Random, sequence: int, payload: bytes) -> list[bytes]:
        return [_framed(sequence + number, payload) for number in range(chance.choice((2, 2, 300)))]

    def _left_out(self, _: Random, __: int, ___: bytes) -> list[bytes]:
        return []

    def _other(self, chance: Random, sequence: int, payload: bytes) -> list[bytes]:
        return [_framed(sequence, chance.choice(self._seen) if self._seen else payload)]

    def _invented(self, chance: Random, sequence: int, _: bytes) -> list[bytes]:
        number = chance.choice(_ERRORS).to_bytes(2, "little")
        payload = chance.choice((
            _OK, b"\0\0\0\x0a\0\0\0", b"\0", b"\xff" + number + b"#HY000no", b"\xff" + number,
            b"\xff", b"\xfe\0\0\2\0", b"\xfe", b"\xfe\0\0\x0a\0", b"\xfb/etc/passwd",
            b"\xfd\xff\xff\xff", b"\xfemysql_native_password\0" + bytes(21),
            b"\xfemysql_clear_password\0", b"\1\4", b"\1",
        ))  # fmt: skip
        return [_framed(sequence, payload)]

    def _values(self, chance: Random, sequence: int, payload: bytes) -> list[bytes]:
        """Change a value of a row; what is none, is left alone."""
        values = _row(payload)
        if not values:
            return [_framed(sequence, payload)]
        values[chance.randrange(len(values))] = chance.choice((
            b"\xfb", b"\0", b"\2-1", b"\x1499999999999999999999", b"\1x", b"\2\xff\xfe", b"\3ON\0",
            b"\xfd\0\0\1" + b"9" * 65536,
        ))  # fmt: skip
        return [_framed(sequence, b"".join(values))]

    def _inflated(self, _: Random, sequence: int, payload: bytes) -> list[bytes]:
        full = payload + bytes(0xFFFFFF - len(payload))
        return [_framed(sequence + number, full) for number in range(self.endless)]


class _Stream:
    def __init__(self, hostility: Hostility, chance: Random, rate: float, calm: int) -> None:
        self._hostility = hostility
        self._chance = chance
        self._rate = rate
        self._calm = calm
        self._data = bytearray()
        self._moved = 0
        """By how much the numbers of the packets that follow have to be moved to fit."""

    def take(self, data: bytes) -> bytes:
        """Return what is passed on instead."""
        if not self._hostility.on:
            data, self._data = bytes(self._data) + data, bytearray()
            return data
        self._data += data
        sent: list[bytes] = []
        while len(self._data) >= 4:
            size = int.from_bytes(self._data[:3], "little")
            if len(self._data) < 4 + size:
                break
            sequence = self._data[3]
            payload = bytes(self._data[4 : 4 + size])
            del self._data[: 4 + size]
            sent += self._packet(sequence, payload)
        return b"".join(sent)

    def _packet(self, sequence: int, payload: bytes) -> list[bytes]:
        hostility, chance = self._hostility, self._chance
        if sequence <= 1:
            # The answer to another command.
            self._moved = 0
        moved = sequence + self._moved
        self._calm -= 1
        if self._calm >= 0 or len(payload) > _LARGEST or chance.random() >= self._rate:
            hostility.see(payload)
            return [_framed(moved, payload)]
        packets = hostility.changed(chance, moved, payload)
        self._moved += len(packets) - 1
        return packets


def _framed(sequence: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes((sequence & 0xFF,)) + payload


def _row(payload: bytes) -> list[bytes]:
    """Return the values of a row, each with its length; none if it is no row."""
    values = []
    at = 0
    while at < len(payload):
        first = payload[at]
        if first == 0xFB:
            end = at + 1
        elif first < 0xFB:
            end = at + 1 + first
        elif first == 0xFC:
            end = at + 3 + int.from_bytes(payload[at + 1 : at + 3], "little")
        else:
            return []
        if end > len(payload):
            return []
        values.append(payload[at:end])
        at = end
    return values
