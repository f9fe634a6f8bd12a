"""Binary logs, wherever they are: what a plan asks of them, and how a task opens them."""

from contextlib import AbstractContextManager
from typing import Protocol

from mtsd.binlog.ranges import ByteRange
from mtsd.binlog.sync import FileContents
from mtsd.catalog.definition import TableDefinition
from mtsd.model.errors import MtsdError
from mtsd.model.position import Position


class FilesError(MtsdError):
    """There are no binary logs where they should be, or it is not clear which are meant."""


class Logs(Protocol):
    """The files of one log. All that is asked raises FilesError, BinlogError, NotSupportedError.

    `span` is a file from a group's end on, to the file's present end; it is its last file where its
    tail is GROWING.
    """

    @property
    def origin(self) -> str:
        """Return which server's the log is, "" where that is not known."""
        ...

    def files(self) -> list[tuple[str, int]]:
        """Return the files and their sizes, in their order; all but the last one are complete."""
        ...

    def is_begun(self, file: str, size: int) -> bool:
        """Tell whether the server has written what a file begins with."""
        ...

    def last_end(self, span: ByteRange) -> int | None:
        """Return the end of the last whole group; None if there is none."""
        ...

    def end_within(self, span: ByteRange, most: int) -> int | None:
        """Return the last end of a group in the first `most` bytes; None if there is none."""
        ...

    def end_behind(self, span: ByteRange, least: int) -> int | None:
        """Return the first end of a group behind the first `least` bytes; None if there is none."""
        ...

    def first_begin(self, file: str, size: int, offset: int) -> int | None:
        """Return where the first group begins from `offset` on; None if there is none."""
        ...

    def opened(self, bounds: ByteRange, origin: str = "") -> AbstractContextManager[FileContents]:
        """Open the file of a range, which is of the logs with this origin if one is given."""
        ...

    def check_end(self, bounds: ByteRange) -> None:
        """Raise FilesError if the file of a range is not complete, although another follows it."""
        ...

    def missing(self, file: str) -> FilesError:
        """Return the error of a file that is not there any more."""
        ...

    def definition(self, database: str, table: str) -> TableDefinition | None:
        """Return a table as the source has it now; None where nothing says so."""
        ...

    def close(self) -> None:
        """Close whatever is open."""
        ...

    def planned(self, parts: list[ByteRange], most: int) -> list[tuple[ByteRange, ...]]:
        """Return what each task reads of the parts, one for each file: about `most` bytes."""
        ...


def name_of(path: str) -> str:
    """Return a file's name without its folder."""
    return path.rpartition("/")[2]


def place_of(path: str, offset: int) -> Position:
    """Return a place in a file, by the file's name without its folder."""
    return Position(name_of(path), offset)
