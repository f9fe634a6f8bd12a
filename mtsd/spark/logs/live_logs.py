"""The binary logs of a live source, read through dumps.

A dump begins with an event, and only reading finds where events begin. So one task reads a whole
file, or all of it after the offset that a stream has reached. A stream with a size limit also has
to read in order to find where its next batch ends, if that is within a file.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from mtsd.binlog.files.group_ends import end_behind, end_within, last_end
from mtsd.binlog.files.ranges import ByteRange, together
from mtsd.catalog.definition import TableDefinition, loaded_definition
from mtsd.model.position import Position
from mtsd.spark.logs.dump_contents import DumpContents
from mtsd.spark.logs.failure import one_line
from mtsd.spark.logs.live_connection import LiveSession, LiveState
from mtsd.spark.logs.logs import FilesError, Stretch, name_of
from mtsd.spark.options.live_options import LiveOptions

T = TypeVar("T")


class LiveLogs:
    """The files that a source lists; a pickled copy opens its own connection."""

    is_divisible = False

    def __init__(self, live: LiveOptions) -> None:
        self._live = live
        self._runner: asyncio.Runner | None = None
        self._session = LiveSession(live)
        self._state: LiveState | None = None

    def __reduce__(self) -> tuple[type["LiveLogs"], tuple[LiveOptions]]:
        """Pickle without the connection."""
        return LiveLogs, (self._live,)

    @property
    def origin(self) -> str:
        """Return the source's server UUID."""
        return self._asked().uuid

    def files(self) -> list[tuple[str, int]]:
        """Return the files and their sizes, in order."""
        return list(self._asked(again=True).files)

    def executed_at(self, place: Position) -> str:
        """Return the GTIDs of all before a place, if it is the end that was found last, else ""."""
        state = self._asked()
        return state.executed if Position(*state.files[-1]) == place else ""

    def is_begun(self, _file: str, _size: int) -> bool:
        """Return True: the source does not list other files."""
        return True

    def last_end(self, span: ByteRange) -> int | None:
        """Return the end of the last whole group; None if there is none."""
        if (span.file, span.size) in self._asked().files:
            return span.size
        with one_line(span.file), self.opened(span) as contents:
            return last_end(contents, span.file, span.first, tail=span.tail)

    def end_within(self, span: ByteRange, most: int) -> int | None:
        """Return the last end of a group in the first `most` bytes; None if there is none."""
        with one_line(span.file), self.opened(span) as contents:
            return end_within(contents, span.file, span.first, most, tail=span.tail)

    def end_behind(self, span: ByteRange, least: int) -> int | None:
        """Return the first end of a group after the first `least` bytes; None if there is none."""
        with one_line(span.file), self.opened(span) as contents:
            return end_behind(contents, span.file, span.first, least, tail=span.tail)

    def first_begin(self, file: str, size: int, offset: int) -> int | None:
        """Return `offset`: the source rejects an offset at which no event begins."""
        return offset if offset <= size and file else None

    @contextmanager
    def opened(self, bounds: ByteRange, origin: str = "") -> Iterator[DumpContents]:
        """Open the file of a range; it is an error if the source is not `origin`."""
        known = "" if self._state is None else self._state.uuid
        contents = DumpContents(self._live, bounds, origin or known)
        try:
            yield contents
        finally:
            contents.close()

    def aside(self) -> "LiveLogs":
        """Return the source's logs, read without a server id: those there are may be taken."""
        return LiveLogs(replace(self._live, server_ids=()))

    def check_end(self, _bounds: ByteRange) -> None:
        """Do nothing: the source's own files are complete."""

    def remarks(self, _files: Sequence[tuple[str, int]]) -> list[str]:
        """Return nothing."""
        return []

    def missing(self, file: str) -> FilesError:
        """Return the error for a file that no longer exists."""
        first = name_of(self._asked().files[0][0])
        return FilesError(
            f"the source {self._live} has no {file} any more, and it was not read to its end: it"
            f" was purged (binlog_expire_logs_seconds), and {first} is the oldest"
        )

    def planned(self, parts: list[ByteRange], most: int) -> list[tuple[ByteRange, ...]]:
        """Return what each task reads: small files are combined, and no file is split."""
        return together([part for part in parts if part.begin < part.end], most)

    def definition(self, database: str, table: str) -> TableDefinition | None:
        """Return the source's current definition of a table; None if it does not show one."""
        where = f"table_schema = {_quoted(database)} AND table_name = {_quoted(table)}"
        rows = self._run(
            "SELECT column_name, column_type, character_set_name FROM information_schema.columns"
            f" WHERE {where} ORDER BY ordinal_position"
        )
        columns = [(str(name), str(kind), text) for name, kind, text in rows]
        return loaded_definition(database, table, columns) if columns else None

    def are_columns_named(self, _stretch: Stretch) -> bool:
        """Tell whether the source names columns now: another dump would need another server id."""
        rows = self._run("SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'")
        return [value for _, value in rows] == ["FULL"]

    def may_have_rows(self, _database: str, _table: str, _stretch: Stretch) -> bool:
        """Return True: only another dump would show it."""
        return True

    def close(self) -> None:
        """Close the connection."""
        self._session.close()
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _asked(self, *, again: bool = False) -> LiveState:
        if again or self._state is None:
            self._state = self._loop().run(self._session.state(self._state))
        return self._state

    def _run(self, sql: str) -> list[tuple[str | None, ...]]:
        return self._loop().run(self._session.rows(sql))

    def _loop(self) -> asyncio.Runner:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner


def _quoted(text: str) -> str:
    return "_utf8mb4 0x" + text.encode().hex() if text else "''"
