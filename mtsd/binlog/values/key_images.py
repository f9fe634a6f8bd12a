"""Images of rows, of which only the columns of keys are wanted: their bytes, as they are."""

from collections.abc import Sequence

from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.model.errors import BinlogError


class _Column:
    """A column of an image, or several ones side by side: its bytes, of which `prefix` a length.

    Without `prefix` they are `size`; `slot` is negative if nobody wants them.
    """

    __slots__ = ("prefix", "size", "slot")

    def __init__(self, prefix: int, size: int, slot: int) -> None:
        self.prefix = prefix
        self.size = size
        self.slot = slot


class Images:
    """Reads of the images of one bitmap the bytes of those columns that have a slot."""

    __slots__ = ("_columns", "_null_bits", "_null_bytes", "_without_nulls")

    def __init__(
        self, formats: Sequence[ColumnFormat], bitmap: bytes, slots: dict[int, int]
    ) -> None:
        bits = int.from_bytes(bitmap, "little")
        present = [index for index in range(len(formats)) if bits >> index & 1]
        self._null_bytes = (len(present) + 7) >> 3
        # A MariaDB sets the bits that belong to no column.
        self._null_bits = (1 << len(present)) - 1
        self._columns = [
            _Column(formats[index].prefix, formats[index].size, slots.get(index, -1))
            for index in present
        ]
        joined: list[_Column] = []
        for each in self._columns:
            last = joined[-1] if joined else None
            if last is None or each.prefix or each.slot >= 0 or last.prefix or last.slot >= 0:
                joined.append(_Column(each.prefix, each.size, each.slot))
            else:
                last.size += each.size
        self._without_nulls = joined

    def read(self, event: bytes, at: int, values: list[bytes | None]) -> int:
        """Put values into their slots, None for NULL, and return where the image ends.

        Raises BinlogError where it is cut off.
        """
        end = len(event)
        rows_at = at + self._null_bytes
        if rows_at == at + 1 and at < end:
            nulls = event[at] & self._null_bits
        else:
            nulls = int.from_bytes(event[at:rows_at], "little") & self._null_bits
        at = rows_at
        if not nulls:
            for column in self._without_nulls:
                prefix = column.prefix
                slot = column.slot
                if prefix:
                    start = at + prefix
                    if start > end:
                        raise _cut_off(end)
                    # A length has one or two bytes, that of a BLOB up to four.
                    length = event[at]
                    if prefix > 1:
                        length |= event[at + 1] << 8
                        if prefix > 2:
                            length = int.from_bytes(event[at:start], "little")
                    at = start + length
                else:
                    start = at
                    at += column.size
                if slot >= 0:
                    values[slot] = event[start:at]
        else:
            for column in self._columns:
                prefix = column.prefix
                slot = column.slot
                if nulls & 1:
                    if slot >= 0:
                        values[slot] = None
                else:
                    if prefix:
                        start = at + prefix
                        at = start + int.from_bytes(event[at:start], "little")
                    else:
                        start = at
                        at += column.size
                    if slot >= 0:
                        values[slot] = event[start:at]
                nulls >>= 1
        if at > end:
            raise _cut_off(end)
        return at


def _cut_off(end: int) -> BinlogError:
    return BinlogError(f"row event: an image is cut off at byte {end}")
