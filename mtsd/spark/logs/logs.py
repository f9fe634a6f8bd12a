"""The interface to binary logs, wherever they are: what planning needs, and how tasks open them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from mtsd.binlog.files.ranges import ByteRange
from mtsd.binlog.files.sync import FileContents
from mtsd.catalog.definition import TableDefinition
from mtsd.model.errors import MtsdError
from mtsd.model.position import Position


class FilesError(MtsdError):
    """There are no binary logs where they should be, or it is ambiguous which ones are meant."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The log from one place to another."""

    begin: Position
    end: Position


class Logs(Protocol):
    """The files of one log. Its methods raise FilesError, BinlogError and NotSupportedError.

    A `span` reaches from the end of a group to the file's current end; if its tail is GROWING, the
    file is the last one.
    """

    is_divisible: bool
    """Whether a range may begin anywhere in a file, and not only at its beginning."""

    @property
    def origin(self) -> str:
        """Return the server that the log belongs to, "" if unknown."""
        ...

    def files(self) -> list[tuple[str, int]]:
        """Return the files and their sizes, in order; all but the last one are complete."""
        ...

    def executed_at(self, place: Position) -> str:
        """Return the GTIDs of exactly those before a place in the log; "" if they are not known."""
        ...

    def is_begun(self, file: str, size: int) -> bool:
        """Tell whether the server has written the beginning of a file."""
        ...

    def last_end(self, span: ByteRange) -> int | None:
        """Return the end of the last whole group; None if there is none."""
        ...

    def end_within(self, span: ByteRange, most: int) -> int | None:
        """Return the last end of a group in the first `most` bytes; None if there is none."""
        ...

    def end_behind(self, span: ByteRange, least: int) -> int | None:
        """Return the first end of a group after the first `least` bytes; None if there is none."""
        ...

    def first_begin(self, file: str, size: int, offset: int) -> int | None:
        """Return where the first group at or after `offset` begins; None if there is none."""
        ...

    def opened(self, bounds: ByteRange, origin: str = "") -> AbstractContextManager[FileContents]:
        """Open the file of a range, which belongs to the log with this origin if one is given."""
        ...

    def aside(self) -> "Logs":
        """Return the same logs, to be read while a file of these is open."""
        ...

    def check_end(self, bounds: ByteRange) -> None:
        """Raise FilesError if the file of a range is not where it belongs in the log.

        Or if it is incomplete, although another one follows.
        """
        ...

    def remarks(self, files: Sequence[tuple[str, int]]) -> list[str]:
        """Return what should be known of the files that are read, and is no error."""
        ...

    def missing(self, file: str) -> FilesError:
        """Return the error for a file that no longer exists."""
        ...

    def definition(self, database: str, table: str) -> TableDefinition | None:
        """Return the source's current definition of a table; None if it is unknown."""
        ...

    def are_columns_named(self, stretch: Stretch) -> bool:
        """Tell whether the first rows there come with column names (binlog_row_metadata).

        True if there are no rows. Nothing outside of the stretch is read.
        """
        ...

    def may_have_rows(self, database: str, table: str, stretch: Stretch) -> bool:
        """Tell whether there may be rows of a table there. Nothing outside of it is read."""
        ...

    def close(self) -> None:
        """Close whatever is open."""
        ...

    def planned(self, parts: list[ByteRange], most: int) -> list[tuple[ByteRange, ...]]:
        """Return what each task reads, about `most` bytes; there is one part per file."""
        ...


def name_of(path: str) -> str:
    """Return a file's name without its folder."""
    return path.rpartition("/")[2]


def place_of(path: str, offset: int) -> Position:
    """Return a place in a file, by the file's name without its folder."""
    return Position(name_of(path), offset)
