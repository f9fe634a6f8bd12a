"""Groups as their rows count: those of an XA transaction come with its XA COMMIT.

XA PREPARE is a group of its own, with the rows, and may be anywhere before: in the same range, in
an earlier one, or in another file. Other transactions lie between them, and XA ROLLBACK may follow.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail
from mtsd.model.errors import NotSupportedError
from mtsd.model.group import GroupKind
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.step import Statement, StatementKind
from mtsd.model.xa_xid import XaXid
from mtsd.spark.arrays.plain_groups import PlainFinder, PlainGroups
from mtsd.spark.logs.logs import Logs, name_of
from mtsd.spark.logs.whole_read import WholeRead

_HELD: Final = 16 << 20
"""Bytes of prepared transactions that a range keeps in memory; of others, where they are."""
_WINDOW: Final = 4 << 20
"""How much of a file is searched at first for an XA PREPARE before a range."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Where a prepared group is, and the group itself if it is held."""

    file: str
    begin: int
    end: int
    part: GroupPart | None = None

    @property
    def size(self) -> int:
        return 0 if self.part is None else self.end - self.begin


class CompletedGroups:
    """The groups of a range of `file`; `whole` is what the range is a part of, None if unknown.

    With `skips`, a transaction whose XA PREPARE is gone is passed over.
    """

    def __init__(self, file: str, whole: WholeRead | None, *, skips: bool = False) -> None:
        self._file = file
        self._whole = whole
        self._skips = skips
        self._prepared: dict[XaXid, _Prepared] = {}
        self._held = 0

    def parts(
        self,
        reader: RangeReader,
        keeps: Callable[[GroupPart], bool],
        kept: Callable[[PlainGroups], PlainGroups],
    ) -> Iterator[GroupPart | PlainGroups]:
        """Yield the parts to keep of all groups but XA PREPARE, whose rows its XA COMMIT has.

        Of plain ones it yields what is `kept`. Raises NotSupportedError, with the place of an XA
        COMMIT, if its XA PREPARE is not found.
        """
        for part in reader.stretches(PlainFinder(reader.dialect)):
            if isinstance(part, PlainGroups):
                groups = kept(part)
                if len(groups):
                    yield groups
                continue
            group = part.group
            if group is None:
                # Whether a transaction in several parts is one of XA that is only prepared shows
                # at its end.
                if part.xid is None and keeps(part):
                    yield part
            elif group.kind is GroupKind.XA_PREPARE:
                self._hold(part, group.xid)
            elif group.kind is GroupKind.XA_COMPLETE:
                found = self._prepared.pop(group.xid, None) if group.xid is not None else None
                self._held -= 0 if found is None else found.size
                if _commits(part) and keeps(part):
                    yield from self._committed(part, found)
            elif keeps(part):
                if part.xid is not None:
                    yield from self._read_again(_Prepared(self._file, part.begin, part.end), part)
                else:
                    yield part

    def _hold(self, part: GroupPart, xid: XaXid | None) -> None:
        if xid is None:
            return
        size = part.end - part.begin
        fits = part.xid is None and self._held + size <= _HELD
        self._prepared[xid] = _Prepared(self._file, part.begin, part.end, part if fits else None)
        self._held += size if fits else 0

    def _committed(self, commit: GroupPart, found: _Prepared | None) -> Iterator[GroupPart]:
        if found is None:
            found = self._found_before(commit)
        if found is None:
            if not self._skips:
                xid = None if commit.group is None else commit.group.xid
                raise NotSupportedError(
                    f"XA COMMIT {xid}: the binary logs that are there do not have its XA PREPARE,"
                    " and so not its rows; option unseen_changes=skip goes on without them (after"
                    f" {self._file}:{commit.begin})"
                )
        elif found.part is not None:
            yield commit._replace(steps=found.part.steps)
        else:
            yield from self._read_again(found, commit)

    def _read_again(self, prepared: _Prepared, commit: GroupPart) -> Iterator[GroupPart]:
        """Yield the parts of a group with the place, GTID and time of its commit."""
        if self._whole is None:
            return
        with closing(self._whole.logs.aside()) as logs:
            for file, size in logs.files():
                if name_of(file) != prepared.file:
                    continue
                bounds = ByteRange(
                    file, prepared.begin, prepared.end, min(size, prepared.end), prepared.begin,
                    Tail.WHOLE,
                )  # fmt: skip
                with logs.opened(bounds) as contents:
                    for part in RangeReader(contents, bounds, prepared.file).parts():
                        group = None if part.group is None else commit.group
                        yield commit._replace(steps=part.steps, group=group)

    def _found_before(self, commit: GroupPart) -> _Prepared | None:
        """Look for an XA PREPARE in what comes before its XA COMMIT, backwards."""
        group = commit.group
        if self._whole is None or group is None or group.xid is None:
            return None
        place = Position(self._file, commit.begin)
        with closing(self._whole.logs.aside()) as logs:
            for number, bounds in enumerate(_windows(logs, place)):
                newly = _prepared_in(logs, bounds)
                if found := newly.pop(group.xid, None):
                    if not number:
                        # They are likely to be completed next. In what is further back, they may
                        # have been completed since.
                        self._prepared = newly | self._prepared
                    return found
        return None


def _commits(part: GroupPart) -> bool:
    return any(
        isinstance(step, Statement) and step.kind is StatementKind.XA_COMMIT for step in part.steps
    )


def _windows(logs: Logs, before: Position) -> Iterator[ByteRange]:
    """Yield what comes before a place, backwards, in ranges that become larger."""
    size = _WINDOW
    for file, length in reversed(logs.files()):
        name = name_of(file)
        if Position(name, FIRST_EVENT) >= before:
            continue
        end = stop = before.offset if name == before.file else length
        while end > FIRST_EVENT:
            begin = FIRST_EVENT if not logs.is_divisible else max(FIRST_EVENT, end - size)
            yield ByteRange(file, begin, end, stop, tail=Tail.GROWING)
            end = begin
            size *= 4


def _prepared_in(logs: Logs, bounds: ByteRange) -> dict[XaXid, _Prepared]:
    """Return the transactions that are prepared in a range and not completed there."""
    found: dict[XaXid, _Prepared] = {}
    name = name_of(bounds.file)
    with logs.opened(bounds) as contents:
        for part in RangeReader(contents, bounds, name).parts():
            group = part.group
            if group is None or group.xid is None:
                continue
            found.pop(group.xid, None)
            if group.kind is GroupKind.XA_PREPARE:
                found[group.xid] = _Prepared(name, part.begin, part.end)
    return found
