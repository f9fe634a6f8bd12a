"""The whole of a read, or of a stream's batch, for tasks that have to know more than their part."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from mtsd.binlog.files.ranges import ByteRange, whole_files
from mtsd.model.position import Position
from mtsd.spark.logs.logs import Logs, Stretch, name_of, place_of


@dataclass(frozen=True, slots=True)
class WholeRead:
    """What a range is a part of; `is_at_begin` if nothing of it comes before the range."""

    logs: Logs
    stretch: Stretch
    is_at_begin: bool

    def names_columns(self, after: Position | None = None) -> bool:
        """Tell whether its first rows, or the first after a place, come with column names."""
        begin = self.stretch.begin if after is None else after
        with closing(self.logs):
            return self.logs.are_columns_named(replace(self.stretch, begin=begin))

    def may_have_rows(self, database: str, table: str, before: Position) -> bool:
        """Tell whether rows of a table may come before a place."""
        with closing(self.logs):
            return self.logs.may_have_rows(database, table, replace(self.stretch, end=before))


def stretch_of(
    parts: Sequence[ByteRange], start: Position | None = None, end: Position | None = None
) -> Stretch | None:
    """Return where parts of a log begin and end, in order, between two places; None if none."""
    if not parts:
        return None
    begin = place_of(parts[0].file, parts[0].begin)
    stop = place_of(parts[-1].file, parts[-1].end)
    return Stretch(
        begin if start is None else max(begin, start), stop if end is None else min(stop, end)
    )


def parts_within(stretch: Stretch, files: Sequence[tuple[str, int]]) -> Iterator[ByteRange]:
    """Yield the ranges of these files that are inside of a stretch, one per file."""
    for part in whole_files(files):
        begin = max(stretch.begin, place_of(part.file, part.begin))
        end = min(stretch.end, place_of(part.file, part.end))
        if begin < end and begin.file == end.file == name_of(part.file):
            yield replace(part, begin=begin.offset, end=end.offset)
