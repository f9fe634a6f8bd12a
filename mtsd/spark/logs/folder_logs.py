"""Binary logs in a folder, or wherever else `mtsd.spark.logs.binlog_files` finds them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from mtsd.binlog.bytes.event_type import IN_USE
from mtsd.binlog.bytes.header import parse_header
from mtsd.binlog.events.format_description import FormatDescription
from mtsd.binlog.files.file_beginning import read_description
from mtsd.binlog.files.file_end import file_end
from mtsd.binlog.files.file_order import file_beginning, misnamed, out_of_order
from mtsd.binlog.files.group_ends import end_behind, end_within, is_described, last_end
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail, planned, whole_file
from mtsd.binlog.values.table_metadata import parse_optional_metadata
from mtsd.catalog.definition import TableDefinition
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.logs.binlog_files import OpenFile, left_out, listed, opened
from mtsd.spark.logs.failure import one_line
from mtsd.spark.logs.logs import FilesError, Stretch, name_of
from mtsd.spark.logs.table_maps import table_maps
from mtsd.spark.logs.whole_read import parts_within

_ALWAYS_GTID_EVENTS = (5, 7)


class FolderLogs:
    """The files at paths, as `listed` takes them; the last one may still be growing."""

    is_divisible = True

    def __init__(self, *paths: str) -> None:
        self._paths = paths

    @property
    def origin(self) -> str:
        """Return ""."""
        return ""

    def files(self) -> list[tuple[str, int]]:
        """Return the files and their sizes, in order."""
        return listed(*self._paths)

    def executed_at(self, _place: Position) -> str:
        """Return "": files do not change their server."""
        return ""

    def is_begun(self, file: str, size: int) -> bool:
        """Tell whether the server has written the beginning of a file."""
        with one_line(file), opened(whole_file(file, size)) as contents:
            return is_described(contents)

    def last_end(self, span: ByteRange) -> int | None:
        """Return the end of the last whole group; None if there is none."""
        with one_line(span.file), opened(span) as contents:
            return last_end(contents, name_of(span.file), span.first, tail=span.tail)

    def end_within(self, span: ByteRange, most: int) -> int | None:
        """Return the last end of a group in the first `most` bytes; None if there is none."""
        with one_line(span.file), opened(span) as contents:
            return end_within(contents, name_of(span.file), span.first, most, tail=span.tail)

    def end_behind(self, span: ByteRange, least: int) -> int | None:
        """Return the first end of a group after the first `least` bytes; None if there is none."""
        with one_line(span.file), opened(span) as contents:
            return end_behind(contents, name_of(span.file), span.first, least, tail=span.tail)

    def first_begin(self, file: str, size: int, offset: int) -> int | None:
        """Return where the first group at or after `offset` begins; None if there is none.

        If no event shows where a group begins, `offset` is returned unchanged.
        """
        if offset in {FIRST_EVENT, size}:
            return offset
        bounds = ByteRange(file, offset, size, size, tail=Tail.GROWING)
        with one_line(file), opened(bounds) as contents:
            reader = RangeReader(contents, bounds, name_of(file))
            if _version(reader.description) < _ALWAYS_GTID_EVENTS:
                return offset
            return reader.first_boundary()

    def opened(self, bounds: ByteRange, _origin: str = "") -> AbstractContextManager[OpenFile]:
        """Open the file of a range."""
        return opened(bounds)

    def aside(self) -> "FolderLogs":
        """Return these logs: any number of files may be open."""
        return self

    def check_end(self, bounds: ByteRange) -> None:
        """Raise FilesError if the file of a range is incomplete, or not where it belongs."""
        name, following = name_of(bounds.file), name_of(bounds.following)
        with opened(bounds) as contents:
            end = file_end(contents, name)
            wrong = misnamed(name, end, following)
            before = file_beginning(contents, name) if following and not wrong else None
        if before is not None:
            ((file, size),) = listed(bounds.following)
            with one_line(file), opened(whole_file(file, size)) as contents:
                after = file_beginning(contents, following)
            if end is None and not after.by_a_server:
                raise FilesError(
                    f"{bounds.file} is not complete: {following} follows it, but it ends neither"
                    " with a Rotate nor with a Stop event. Copy it again"
                )
            wrong = out_of_order(before, end, following, after)
        if wrong:
            raise FilesError(
                f"{bounds.file} is not the file that its name says, or one is missing: {wrong}."
                " Copy the files again"
            )

    def remarks(self, files: Sequence[tuple[str, int]]) -> list[str]:
        """Return what should be known of the files that are read, and is no error."""
        found = [
            f"{name} is not read: it is no binary log by its name"
            for name in left_out(*self._paths)
        ]
        for file, size in files[-1:]:
            name = name_of(file)
            with one_line(file), opened(whole_file(file, size)) as contents:
                flags = parse_header(read_description(contents, name)).flags
                if not flags & IN_USE and file_end(contents, name) is None:
                    found.append(
                        f"{file} may be incomplete: it is not marked as being written, and ends"
                        " neither with a Rotate nor with a Stop event"
                    )
        return found

    def missing(self, file: str) -> FilesError:
        """Return the error for a file that no longer exists."""
        return FilesError(
            f"{', '.join(self._paths)}: {file} is not there any more, and was not read to its end"
        )

    def definition(self, _database: str, _table: str) -> TableDefinition | None:
        """Return None."""
        return None

    def are_columns_named(self, stretch: Stretch) -> bool:
        """Tell whether the first rows there come with column names; True if there are none."""
        table = next(table_maps(parts_within(stretch, self.files())), None)
        return table is None or bool(parse_optional_metadata(table).names)

    def may_have_rows(self, database: str, table: str, stretch: Stretch) -> bool:
        """Tell whether there are rows of a table there."""
        return any(
            (one.database, one.table) == (database, table)
            for one in table_maps(parts_within(stretch, self.files()))
        )

    def close(self) -> None:
        """Do nothing: each file is closed after it has been read."""

    def planned(self, parts: list[ByteRange], most: int) -> list[tuple[ByteRange, ...]]:
        """Return what each task reads; any range of a file can be read independently."""
        return planned(parts, most)


def _version(description: FormatDescription) -> tuple[int, ...]:
    return tuple(map(int, description.server_version.split(".")[:2]))
