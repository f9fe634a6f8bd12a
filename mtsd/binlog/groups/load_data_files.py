"""Which files of LOAD DATA have been read, and not yet their statement.

Usually a file and its statement are in one group. But a statement on a non-transactional table, in
a transaction that has changed others before, is written with that transaction, and MySQL writes its
file at once: as a group of its own, without a statement.
"""

from collections.abc import Sequence

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.load_data import parse_block
from mtsd.model.errors import BinlogError

UNKNOWN = (
    "a LOAD DATA whose file is in an earlier transaction, before the place where reading began:"
    " load that file into the target manually"
)
TOO_LARGE = (
    "a LOAD DATA whose file is in an earlier transaction, and larger than"
    " replica.pending_jobs_size_max"
)


ENTRY_COST = 256
"""Bytes of memory that an entry takes, a file or one of its blocks, beside its contents."""
_MAX_BEGUN = 10_000
"""Files of one transaction whose statement has not come. A server writes one after the other, each
with its statement, and a file in a transaction of its own has no other beside it."""


class LoadDataFiles:
    """Follows the events of a stream; `limit` are the bytes of files that are kept for later."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._here: dict[int, list[bytes]] = {}
        """Of the group that is being read, by file id: without contents if they are too large."""
        self._earlier: dict[int, list[bytes]] = {}
        self._used: set[int] = set()
        """Those of `_earlier` whose statement is in the group that is being read."""

    def take(self, event: bytes) -> None:
        """Note a block of a file, or its removal.

        Raises BinlogError if it is truncated, or of more files than a transaction can have.
        """
        file_id, _ = parse_block(event)
        kind = event[4]
        if kind != EventType.APPEND_BLOCK_EVENT:
            self._forget(file_id)
        if kind == EventType.BEGIN_LOAD_QUERY_EVENT:
            if len(self._here) >= _MAX_BEGUN:
                raise BinlogError(
                    f"a transaction begins more than {_MAX_BEGUN} files of LOAD DATA without"
                    " their statements"
                )
            self._here[file_id] = []
            self._size += ENTRY_COST
        blocks = self._here.get(file_id, self._earlier.get(file_id))
        # Without its first block, it has become too large.
        if blocks is None or (kind == EventType.APPEND_BLOCK_EVENT and not blocks):
            return
        blocks.append(event)
        self._size += ENTRY_COST + len(event)
        while self._size > self._limit and self._earlier:
            self._forget(next(iter(self._earlier)))
        if self._size > self._limit:
            self._empty(blocks)

    def pass_on(self) -> None:
        """Note that the group is streamed: what has been read of it is no longer in memory."""
        for blocks in self._here.values():
            self._empty(blocks)

    def of_statement(self, file_id: int) -> Sequence[bytes] | str:
        """Return what has to be added to the group with a file's statement.

        Nothing if the file is in that group, else its events, or why they are not at hand.
        """
        if file_id in self._here:
            self._forget(file_id)
            return ()
        blocks = self._earlier.get(file_id)
        if blocks is None:
            return UNKNOWN
        self._used.add(file_id)
        return blocks or TOO_LARGE

    def end_group(self) -> None:
        """Note the end of a group: what is left of it is for a later one."""
        if self._used:
            for file_id in list(self._used):
                self._forget(file_id)
        if self._here:
            self._earlier.update(self._here)
            self._here = {}

    def abandon_group(self) -> None:
        """Note that the group that is being read does not end: it will be read again."""
        self._used.clear()
        for file_id in list(self._here):
            self._forget(file_id)

    def _forget(self, file_id: int) -> None:
        self._used.discard(file_id)
        for files in (self._here, self._earlier):
            blocks = files.pop(file_id, None)
            if blocks is not None:
                self._size -= ENTRY_COST + _cost(blocks)

    def _empty(self, blocks: list[bytes]) -> None:
        self._size -= _cost(blocks)
        blocks.clear()


def _cost(blocks: list[bytes]) -> int:
    return sum(map(len, blocks)) + ENTRY_COST * len(blocks)
