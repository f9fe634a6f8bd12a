"""The files of LOAD DATA statements, from their first block in the binlog to their statement.

The statement comes after its file, so the file has to be kept until then: in memory as long as it
is small, else in a temporary file without a name (in TMPDIR), which is gone when it is closed,
whatever becomes of the process.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import IO, Final

from mtsd.binlog.event_type import EventType
from mtsd.binlog.load_data import parse_block
from mtsd.model.errors import BinlogError, NeedsPersonError

_HELD: Final = 1 << 20
_PIECE: Final = 1 << 18


class LoadFiles:
    """The files of the transaction that a session is applying, by the source's file id."""

    def __init__(self) -> None:
        self._files: dict[int, IO[bytes]] = {}
        self._with_backslashes: set[int] = set()

    async def take(self, event: bytes) -> None:
        """Process Begin_load_query, Append_block or Delete_file.

        Raises BinlogError, NeedsPersonError if the file cannot be kept.
        """
        file_id, block = parse_block(event)
        if event[4] == EventType.BEGIN_LOAD_QUERY_EVENT or event[4] == EventType.DELETE_FILE_EVENT:
            self._close(file_id)
        if event[4] == EventType.DELETE_FILE_EVENT:
            return
        if event[4] == EventType.BEGIN_LOAD_QUERY_EVENT:
            self._files[file_id] = tempfile.SpooledTemporaryFile(_HELD)  # noqa: SIM115 - kept
        if b"\\" in block:
            self._with_backslashes.add(file_id)
        file = self._file(file_id)
        try:
            if file.tell() + len(block) > _HELD:
                await asyncio.to_thread(file.write, block)
            else:
                file.write(block)
        except OSError as error:
            raise _not_kept(error) from error

    async def pieces(self, file_id: int) -> AsyncIterator[bytes]:
        """Yield the contents of a file, from its beginning. Raises as `take` does."""
        file = self._file(file_id)
        try:
            size = file.tell() if file.seekable() else 0
            file.seek(0)
            while piece := (
                await asyncio.to_thread(file.read, _PIECE) if size > _HELD else file.read(_PIECE)
            ):
                yield piece
        except OSError as error:
            raise _not_kept(error) from error

    def has_backslashes(self, file_id: int) -> bool:
        """Return whether a file contains the byte of a backslash."""
        return file_id in self._with_backslashes

    def clear(self) -> None:
        """Forget all files: the transaction has ended."""
        for file_id in list(self._files):
            self._close(file_id)

    def _file(self, file_id: int) -> IO[bytes]:
        file = self._files.get(file_id)
        if file is None:
            raise BinlogError(f"file {file_id} of a LOAD DATA statement has no beginning")
        return file

    def _close(self, file_id: int) -> None:
        self._with_backslashes.discard(file_id)
        file = self._files.pop(file_id, None)
        if file is not None:
            file.close()


def _not_kept(error: OSError) -> NeedsPersonError:
    return NeedsPersonError(
        f"the file of a LOAD DATA statement cannot be kept in {tempfile.gettempdir()} until its"
        f" statement arrives: {error}. Make room there, or set TMPDIR to another folder"
    )
