"""The record of a load: a Parquet file of its groups, with everything that a plan needs.

It has one row per group, in the order of the stream, with what `mtsd.schedule` sees of the group
and its size. The file's metadata says which of the fields that only some policies need it contains.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq

from mtsd.binlog.files.range_parts import GroupPart
from mtsd.model.errors import MtsdError
from mtsd.model.group import Group, GroupChunk, GroupClosed, GroupDropped, GroupKind, StreamItem
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.step import LoadFile, Rows, Step
from mtsd.plan.replayed_group import ReplayedGroup
from mtsd.schedule.policies.assignment import Need
from mtsd.spark.shapes.pending_rows import PendingRows, no_rows

_NAMES: Final = pa.list_(pa.string())
_WORD: Final = pa.dictionary(pa.int32(), pa.string())
SCHEMA: Final = pa.schema([
    pa.field("file", _WORD),
    pa.field("pos", pa.int64()),
    pa.field("length", pa.int64()),
    pa.field("kind", _WORD),
    pa.field("databases", _NAMES),
    pa.field("tables", _NAMES),
    pa.field("alone", pa.bool_()),
    pa.field("statements", pa.bool_()),
    pa.field("row_flags", pa.int32()),
    pa.field("format", pa.int32()),
    pa.field("size", pa.int64()),
    pa.field("rows", pa.int64()),
    pa.field("last_committed", pa.int64()),
    pa.field("sequence_number", pa.int64()),
    pa.field("commit_id", pa.int64()),
    pa.field("commit_time", pa.int64()),
    pa.field("unsupported", _WORD),
])  # fmt: skip
"""`pos` is where the group ends in `file`, `length` its bytes there, `size` the bytes of its
applied events; `statements` tells whether it contains anything but rows, and only if not, `tables`
are all that it updates; `format` counts the format descriptions of the stream; `commit_time` is in
µs since 1970."""
_VERSION: Final = b"2"
_ABOUT: Final = {b"mtsd.group_record": _VERSION, b"mtsd.needs": Need.TABLES.value.encode()}
_MANY: Final = 1 << 15
"""Groups per Parquet row group."""


class RecordError(MtsdError):
    """A file is not a record of groups."""


class _Line(NamedTuple):
    group: Group
    length: int
    statements: bool
    tables: tuple[str, ...]


class GroupRecorder:
    """Writes the record of a stream to the file `path`; a context manager.

    The file appears only when everything has been recorded.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f"{path.name}.part")
        self._writer = pq.ParquetWriter(self._part, SCHEMA.with_metadata(_ABOUT))
        self.groups = 0
        """The number of groups recorded."""
        self._position = Position("", FIRST_EVENT)
        self._pending = PendingRows(no_rows, "", counts_all=True)
        self._lines: list[_Line] = []
        self._rows: list[int] = []
        self._open = 0
        """Rows counted so far in the group that has not ended."""
        self._statements = False
        self._tables: dict[str, None] = {}
        self._named: dict[int, str] = {}
        self._formats: dict[bytes, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._write()
            self._writer.close()
            self._part.rename(self._path)
        else:
            self._writer.close()
            self._part.unlink()

    def add(self, items: Iterable[StreamItem]) -> None:
        """Record the next items. Raises BinlogError if rows are damaged."""
        for item in items:
            if type(item) is Group:
                self._take(item.steps, item)
            elif isinstance(item, GroupChunk):
                self._take(item.steps, None)
            elif isinstance(item, GroupClosed):
                self._take((), item.group)
            elif isinstance(item, GroupDropped):
                raise RecordError(f"the stream ends within a group, after {self._position}")
        if self._pending.is_full:
            self._write()

    def _take(self, steps: tuple[Step, ...], group: Group | None) -> None:
        tables = self._tables
        for table in self._pending.add(GroupPart(0, 0, None, 0, steps, group)):
            tables[f"{table.database}.{table.table}"] = None
        if not self._statements:
            self._statements = any(type(step) is not Rows for step in steps)
        if group is not None:
            end = group.end
            before = self._position
            start = before.offset if before.file == end.file else FIRST_EVENT
            self._position = end
            # Drops the only reference to its events.
            bare = group if not group.steps else replace(group, steps=())
            named = () if self._statements else tuple(tables)
            self._lines.append(_Line(bare, end.offset - start, self._statements, named))
            self._statements = False
            if tables:
                self._tables = {}

    def _write(self) -> None:
        taken = self._pending.take()
        for closes, rows in zip(taken.parts.closes, taken.counts.tolist(), strict=True):
            self._open += rows
            if closes:
                self._rows.append(self._open)
                self._open = 0
        lines, self._lines = self._lines, []
        counts, self._rows = self._rows, []
        if lines:
            self._writer.write_batch(self._batch(lines, counts))
            self.groups += len(lines)

    def _batch(self, lines: Sequence[_Line], rows: Sequence[int]) -> pa.RecordBatch:
        groups = [line.group for line in lines]
        formats = self._formats
        columns: list[pa.Array] = [
            pa.array([group.end.file for group in groups]).dictionary_encode(),
            pa.array([group.end.offset for group in groups], pa.int64()),
            pa.array([line.length for line in lines], pa.int64()),
            pa.array([group.kind.value for group in groups]).dictionary_encode(),
            pa.array([group.databases for group in groups], _NAMES),
            pa.array([line.tables for line in lines], _NAMES),
            pa.array([group.alone for group in groups], pa.bool_()),
            pa.array([line.statements for line in lines], pa.bool_()),
            pa.array([group.row_flags for group in groups], pa.int32()),
            pa.array(
                [formats.setdefault(g.format_description, len(formats)) for g in groups],
                pa.int32(),
            ),
            pa.array([group.size for group in groups], pa.int64()),
            pa.array(rows, pa.int64()),
            pa.array([group.last_committed for group in groups], pa.int64()),
            pa.array([group.sequence_number for group in groups], pa.int64()),
            pa.array([group.commit_id for group in groups], pa.int64()),
            pa.array([group.commit_time for group in groups], pa.int64()),
            pa.array([group.unsupported for group in groups]).dictionary_encode(),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def recorded_needs(path: str) -> frozenset[Need]:
    """Return which of the optional fields the record contains; raises RecordError."""
    needs = _about(path)[b"mtsd.needs"].decode()
    return frozenset(need for need in Need if need.value in needs.split(","))


def count_of(path: str) -> int:
    """Return the number of groups in the record; raises RecordError."""
    _about(path)
    return int(pq.read_metadata(path).num_rows)


def _about(path: str) -> dict[bytes, bytes]:
    try:
        about: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    except pa.ArrowInvalid as error:
        raise RecordError(f"{path} is not a record of groups: it is no Parquet file") from error
    if about.get(b"mtsd.group_record") != _VERSION:
        raise RecordError(f"{path} is not a record of groups that this version reads: record again")
    return about


_KINDS: Final = {kind.value: kind for kind in GroupKind}
_STATEMENTS: Final[tuple[Step, ...]] = (LoadFile(b""),)
"""Stands for the unrecorded steps of a group; all that matters is that they are not rows."""


def replayed_groups(path: str, most: int | None = None) -> Iterator[ReplayedGroup]:
    """Yield up to `most` groups of a record, numbered from 1; raises RecordError."""
    _about(path)
    return islice(_checked(path), most)


def _checked(path: str) -> Iterator[ReplayedGroup]:
    try:
        yield from _replayed(path)
    except (OSError, pa.ArrowException) as error:
        raise RecordError(f"{path} is damaged: {' '.join(str(error).split())}") from error


def _replayed(path: str) -> Iterator[ReplayedGroup]:
    number = 0
    kinds = _KINDS
    together: dict[tuple[str, ...], tuple[str, ...]] = {}
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_MANY):
            columns = [column.to_pylist() for column in batch.columns]
            for (
                name, pos, length, kind, databases, tables, alone, statements, row_flags, form,
                size, rows, last_committed, sequence_number, commit_id, commit_time, unsupported,
            ) in zip(*columns, strict=True):  # fmt: skip
                number += 1
                names = tuple(databases)
                of = tuple(tables)
                group = Group(
                    number,
                    kinds[kind],
                    Position(name, pos),
                    # Equal tuples share one object to save memory.
                    together.setdefault(names, names),
                    alone,
                    _STATEMENTS if statements else (),
                    size,
                    row_flags,
                    b"%d" % form,
                    None,
                    last_committed,
                    sequence_number,
                    commit_time,
                    unsupported,
                    together.setdefault(of, of),
                    commit_id=commit_id,
                )
                yield ReplayedGroup(group, rows, length)
