"""Shape `groups`: every group, with all that a parallel replication policy sees of it."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.model.group import Group
from mtsd.spark.logs.binlog_files import opened
from mtsd.spark.logs.table_maps import OpenRange
from mtsd.spark.options.options import Options
from mtsd.spark.shapes.garbage import collect_seldom
from mtsd.spark.shapes.pending_rows import PendingRows, no_rows
from mtsd.spark.shapes.shape import UTC_MICROSECONDS, FixedColumns, ShapeRequest

_COLUMNS: Final = FixedColumns({
    "file": StringType(),
    "begin": LongType(),
    "pos": LongType(),
    "gtid": StringType(),
    "kind": StringType(),
    "last_committed": LongType(),
    "sequence_number": LongType(),
    "databases": ArrayType(StringType()),
    "tables": ArrayType(StringType()),
    "alone": BooleanType(),
    "bytes": LongType(),
    "rows": LongType(),
    "commit_time": TimestampType(),
})  # fmt: skip


class _Line(NamedTuple):
    begin: int
    group: Group
    tables: list[str]
    rows: int


class GroupShape:
    """One row per group: where it begins and ends (`pos`), and what `mtsd binlog` lists about it.

    `tables` are those with row events, as "database.table"; `bytes` is the uncompressed size of
    its events.
    """

    def schema(
        self, _options: Options, _files: Sequence[tuple[str, int]], _open_range: OpenRange = opened
    ) -> StructType:
        """Return the columns."""
        return _COLUMNS.struct()

    def check(self, request: ShapeRequest) -> None:
        """Raise OptionError if the request has other columns."""
        _COLUMNS.check("groups", request.schema)

    def read(
        self, request: ShapeRequest, reader: RangeReader, file: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the groups of a range."""
        collect_seldom()
        pending = PendingRows(no_rows, file, counts_all=True, mariadb=reader.mariadb)
        lines = _Lines(pending)
        for part in reader.parts():
            if request.keeps(part, file):
                lines.add(part)
                if lines.pending.is_full:
                    yield _batch(request, lines.take(), file)
        rest = lines.take()
        if rest:
            yield _batch(request, rest, file)


class _Lines:
    """Collects the lines of groups from their parts."""

    def __init__(self, pending: PendingRows) -> None:
        self.pending = pending
        self._tables: list[dict[str, None]] = [{}]
        """The tables of each pending group, and of the one that has not ended."""
        self._rows = 0
        """Rows of the group that has not ended."""
        self._parts: list[GroupPart] = []

    def add(self, part: GroupPart) -> None:
        """Add a part."""
        self._parts.append(part)
        for table in self.pending.add(part):
            self._tables[-1][f"{table.database}.{table.table}"] = None
        if part.group is not None:
            self._tables.append({})

    def take(self) -> list[_Line]:
        """Return the groups that have ended."""
        taken = self.pending.take()
        found: list[_Line] = []
        parts, self._parts = self._parts, []
        for part, rows in zip(parts, taken.counts.tolist(), strict=True):
            self._rows += rows
            if part.group is not None:
                tables = list(self._tables[len(found)])
                found.append(_Line(part.begin, part.group, tables, self._rows))
                self._rows = 0
        del self._tables[: len(found)]
        return found


def _batch(request: ShapeRequest, lines: Sequence[_Line], file: str) -> pa.RecordBatch:
    groups = [line.group for line in lines]
    names = pa.list_(pa.string())
    arrays = {
        "file": lambda: pa.repeat(file, len(lines)),
        "begin": lambda: pa.array([line.begin for line in lines], pa.int64()),
        "pos": lambda: pa.array([group.end.offset for group in groups], pa.int64()),
        "gtid": lambda: pa.array(
            [None if group.gtid is None else str(group.gtid) for group in groups], pa.string()
        ),
        "kind": lambda: pa.array([group.kind.value for group in groups], pa.string()),
        "last_committed": lambda: pa.array([group.last_committed for group in groups], pa.int64()),
        "sequence_number": lambda: pa.array(
            [group.sequence_number for group in groups], pa.int64()
        ),
        "databases": lambda: pa.array([sorted(group.databases) for group in groups], names),
        "tables": lambda: pa.array([line.tables for line in lines], names),
        "alone": lambda: pa.array([group.alone for group in groups], pa.bool_()),
        "bytes": lambda: pa.array([group.size for group in groups], pa.int64()),
        "rows": lambda: pa.array([line.rows for line in lines], pa.int64()),
        "commit_time": lambda: pa.array([group.commit_time for group in groups], pa.int64()).cast(
            UTC_MICROSECONDS
        ),
    }
    schema = request.arrow_schema
    return pa.RecordBatch.from_arrays([arrays[name]() for name in schema.names], schema=schema)
