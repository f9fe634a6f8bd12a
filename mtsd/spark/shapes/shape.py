"""A shape: the columns of a DataFrame, and how a range of a binary log becomes its rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.position import Position
from mtsd.spark.arrays.lockstep import Flags, Places
from mtsd.spark.arrays.plain_groups import PlainGroups
from mtsd.spark.logs.binlog_files import opened
from mtsd.spark.logs.table_maps import OpenRange
from mtsd.spark.logs.whole_read import WholeRead
from mtsd.spark.options.options import OptionError, Options
from mtsd.spark.options.row_filters import NO_FILTERS, RowFilters


@dataclass(frozen=True, slots=True)
class ShapeRequest:
    """What a shape has to return: the columns of `schema`, and what the filters keep.

    `whole` is what the range to be read is a part of; None if that is not known. `epoch` counts the
    servers that a stream has read before this one. Groups with GTIDs in `skip` were read before; if
    `only` is not None, those with others come later.
    """

    options: Options
    schema: StructType
    filters: RowFilters = NO_FILTERS
    whole: WholeRead | None = None
    epoch: int = 0
    skip: GtidSet | None = None
    only: GtidSet | None = None

    @property
    def arrow_schema(self) -> pa.Schema:
        """Return the schema of the batches that Spark expects."""
        return to_arrow_schema(self.schema, timezone="UTC")

    def keeps(self, part: GroupPart, file: str) -> bool:
        """Tell whether a group may contain wanted rows."""
        start, end = self.options.start, self.options.end
        if start is not None and Position(file, part.begin) < start:
            return False
        if end is not None and Position(file, part.end) > end:
            return False
        if self.skip is not None and part.gtid is not None and part.gtid in self.skip:
            return False
        if self.only is not None and (part.gtid is None or part.gtid not in self.only):
            return False
        return self.filters.keeps("commit_time", part.commit_time)

    def kept(self, groups: PlainGroups, file: str) -> PlainGroups:
        """Return those of whole groups that may contain wanted rows."""
        start, end = self.options.start, self.options.end
        keeps = np.ones(len(groups), np.bool_)
        if start is not None:
            keeps &= _at_or_after(groups.begins, file, start)
        if end is not None:
            keeps &= ~_at_or_after(groups.ends, file, Position(end.file, end.offset + 1))
        for wanted, known in ((False, self.skip), (True, self.only)):
            if known is not None:
                keeps &= np.fromiter(
                    (
                        (gtid is not None and Gtid.parse(gtid) in known) is wanted
                        for gtid in groups.gtids()
                    ),
                    np.bool_,
                    len(groups),
                )
        for test in self.filters.tests:
            if test.column == "commit_time":
                keeps &= np.fromiter(
                    map(test.holds, groups.commit_times.tolist()), np.bool_, len(groups)
                )
        return groups.only(keeps)


def _at_or_after(offsets: Places, file: str, place: Position) -> Flags:
    if Position(file, place.offset) == place:
        return offsets >= place.offset
    return np.full(len(offsets), Position(file, 0) > place)


class Shape(Protocol):
    """One of the shapes."""

    def schema(
        self, options: Options, files: Sequence[tuple[str, int]], open_range: OpenRange = opened, /
    ) -> StructType:
        """Return all available columns; `files` may be read to find them."""
        ...

    def check(self, request: ShapeRequest) -> None:
        """Raise OptionError if the request's schema is not available."""
        ...

    def read(
        self, request: ShapeRequest, reader: RangeReader, file: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range of a file; raises BinlogError and NotSupportedError."""
        ...


class FixedColumns:
    """The columns of a shape whose columns are always the same."""

    def __init__(self, columns: Mapping[str, DataType]) -> None:
        self._columns = dict(columns)

    def struct(self) -> StructType:
        """Return all columns."""
        return StructType([StructField(name, kind) for name, kind in self._columns.items()])

    def check(self, shape: str, schema: StructType) -> None:
        """Raise OptionError if a column is unknown or has another type."""
        for column in schema.fields:
            kind = self._columns.get(column.name)
            if kind is None:
                raise OptionError(
                    f"shape {shape!r} has no column {column.name!r}: it has"
                    f" {', '.join(self._columns)}"
                )
            if not column.nullable:
                raise OptionError(f"column {column.name!r}: NOT NULL is not supported")
            if column.dataType != kind:
                raise OptionError(
                    f"column {column.name!r} of shape {shape!r} is {kind.simpleString()}, not"
                    f" {column.dataType.simpleString()}"
                )


def pruned(schema: StructType, columns: Sequence[str]) -> StructType:
    """Return the requested columns in this order; OptionError if one does not exist."""
    if not columns:
        return schema
    by_name = {field.name: field for field in schema.fields}
    missing = [name for name in columns if name not in by_name]
    if missing:
        raise OptionError(
            f"option 'columns': there is no {', '.join(missing)}: there are {', '.join(by_name)}"
        )
    return StructType([by_name[name] for name in columns])


UTC_MICROSECONDS: Final = pa.timestamp("us", "UTC")
