"""Groups of row events as statements for the target: what one target transaction consists of."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pybase64 import b64encode

from mtsd.binlog.rewrite import statements_of
from mtsd.model.errors import NeedsPersonError
from mtsd.model.group import Group

BASE64_SHARE = 0.70
"""Row bytes that one BINLOG statement may hold, of max_allowed_packet (measured: about 0.74)."""
ENOUGH = 8 << 20
"""Bytes of a packet to which nothing is added: sending more at once only costs memory."""


class RowTooLargeError(NeedsPersonError):
    """The target's max_allowed_packet is too small for a row, or for the rows of one event."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(
            f"a row event needs a statement of {length} bytes, more than the target takes"
            f" ({limit}): raise max_allowed_packet on the target"
        )


@dataclass(frozen=True, slots=True)
class Packet:
    """Statements that go to the server in one piece: it stops at the first error."""

    sql: bytes
    statements: int


_BINLOG = b"BINLOG '"
_END = b"'"
_NEXT = b";"


def binlog_statement(events: bytes) -> bytes:
    """Return the BINLOG statement of plain events."""
    return b"".join((_BINLOG, b64encode(events), _END))


Record = Callable[[bytes, int], tuple[bytes, bytes]]
"""Makes the events that record a transaction, of the last event before them and its flags."""


def row_statements(
    groups: Sequence[Group], chunk_bytes: int, record: Record | None = None
) -> Iterator[bytes]:
    """Yield the events of groups of rows, as few statements as can be, each of `chunk_bytes`.

    Consecutive groups whose row events all bear the same flags are merged; a group whose own
    events differ in flags stays as it is. `record` goes into the last statement.
    """
    run: list[bytes] = []
    flags: int | None = None
    for group in groups:
        if group.row_flags is None or group.row_flags != flags:
            yield from statements_of(run, chunk_bytes, merge=True)
            run = []
            flags = group.row_flags
        if flags is None:
            yield from statements_of(group.rows, chunk_bytes, merge=False)
        else:
            run.extend(group.rows)
    if record is not None:
        run.extend(record(groups[-1].rows[-1], flags or 0))
    yield from statements_of(run, chunk_bytes, merge=True)


def packets(
    before: Sequence[bytes], rows: Iterable[bytes], after: Sequence[bytes], limit: int
) -> Iterator[Packet]:
    """Yield packets of SQL and BINLOG statements in order, each of `limit` bytes at most.

    Nothing where there is no statement: a server answers an empty one with an error.
    Raises RowTooLargeError where one statement is larger than `limit`.
    """
    # Large statements are copied once only: when all pieces of a packet are put together.
    pieces: list[bytes] = []
    size = count = 0
    for statement in before:
        pieces += (statement, _NEXT)
        size += len(statement) + 1
        count += 1
    for events in rows:
        encoded = b64encode(events)
        length = len(encoded) + len(_BINLOG) + len(_END)
        if count and (size + length > limit or size >= ENOUGH):
            yield Packet(b"".join(pieces[:-1]), count)
            pieces = []
            size = count = 0
        if length > limit:
            raise RowTooLargeError(length, limit)
        pieces += (_BINLOG, encoded, _END, _NEXT)
        size += length + 1
        count += 1
    if count and size + sum(map(len, after)) + len(after) > limit:
        yield Packet(b"".join(pieces[:-1]), count)
        pieces = []
        count = 0
    for statement in after:
        pieces += (statement, _NEXT)
        count += 1
    if count:
        yield Packet(b"".join(pieces[:-1]), count)
