"""Reads an event's fields in order, without ever reading beyond the event."""

from mtsd.model.errors import BinlogError


def u32_at(data: bytes, at: int) -> int:
    """Return the little-endian number of 4 bytes there. Raises IndexError if they are not there.

    Compiled, it takes a tenth of what `int.from_bytes` takes.
    """
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24


class Cursor:
    """A place in an event's bytes. Every read checks the bounds before it allocates anything.

    `what` names the event in errors. All integers are little-endian.
    """

    __slots__ = ("at", "data", "end", "what")

    def __init__(self, data: bytes, at: int, what: str, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end
        self.what = what
        if not 0 <= at <= self.end <= len(data):
            raise BinlogError(f"{what}: cut off at byte {len(data)}")

    def left(self) -> int:
        """Return the number of unread bytes."""
        return self.end - self.at

    def take(self, size: int, field: str) -> bytes:
        """Return the next `size` bytes."""
        start = self.at
        stop = start + size
        if stop > self.end:
            raise BinlogError(
                f"{self.what}: {field} of {size} bytes at {start} exceeds the end {self.end}"
            )
        self.at = stop
        return self.data[start:stop]

    def skip(self, size: int, field: str) -> None:
        """Skip the next `size` bytes."""
        if self.at + size > self.end:
            raise BinlogError(
                f"{self.what}: {field} of {size} bytes at {self.at} exceeds the end {self.end}"
            )
        self.at += size

    def uint(self, size: int, field: str) -> int:
        """Read an unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size, field), "little")

    def net_int(self, field: str) -> int:
        """Read a length-encoded integer: 1, 3, 4 or 9 bytes, depending on the first one."""
        first = self.uint(1, field)
        if first < 251:
            return first
        if first == 252:
            return self.uint(2, field)
        if first == 253:
            return self.uint(3, field)
        if first == 254:
            return self.uint(8, field)
        raise BinlogError(f"{self.what}: {field}: {first} does not start a length-encoded integer")

    def varlen_uint(self, field: str) -> int:
        """Read an unsigned integer of MySQL's serialization library, 1 to 9 bytes.

        The trailing one bits of the first byte count the bytes after it; below 8 of them a zero
        bit follows, then the value (libs/mysql/serialization, "Variable-length integers").
        """
        first = self.uint(1, field)
        more = 0
        while first >> more & 1:
            more += 1
        if more == 8:
            return self.uint(8, field)
        return (first | self.uint(more, field) << 8) >> (more + 1)

    def varlen_int(self, field: str) -> int:
        """Read a signed integer of the same library: the lowest bit is the sign."""
        number = self.varlen_uint(field)
        return ~(number >> 1) if number & 1 else number >> 1

    def text(self, size: int, field: str) -> str:
        """Read `size` bytes of UTF-8."""
        return self.as_text(self.take(size, field), field)

    def as_text(self, raw: bytes, field: str) -> str:
        """Decode UTF-8 bytes that were read from the event."""
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise BinlogError(f"{self.what}: {field} {raw[:80]!r} is not UTF-8") from error

    def finish(self) -> None:
        """Raise BinlogError if there are unread bytes left."""
        if self.at != self.end:
            raise BinlogError(f"{self.what}: {self.end - self.at} unexpected bytes at its end")
