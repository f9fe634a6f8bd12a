"""The files of LOAD DATA statements, from their first block in the binlog to their statement.

The statement comes after its file, so the file has to be kept until then: in memory as long as all
of them together are small, else in a temporary file without a name (in TMPDIR), which is gone when
it is closed, whatever becomes of the process.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.load_data import parse_block
from mtsd.model.errors import BinlogError, NeedsPersonError

_HELD: Final = 1 << 20
"""Bytes in memory, of all files of one session."""
_PIECE: Final = 1 << 18


@dataclass(slots=True)
class _File:
    # Without a limit of its own: it is moved to the disk when all of them are too large.
    spooled: tempfile.SpooledTemporaryFile[bytes] = field(
        default_factory=tempfile.SpooledTemporaryFile
    )
    size: int = 0
    is_on_disk: bool = False
    has_backslashes: bool = False


class LoadFiles:
    """The files of the transaction that a session is applying, by the source's file id."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._in_memory = 0

    async def take(self, event: bytes) -> None:
        """Process Begin_load_query, Append_block or Delete_file.

        Raises BinlogError, NeedsPersonError if the file cannot be kept.
        """
        file_id, block = parse_block(event)
        if event[4] == EventType.BEGIN_LOAD_QUERY_EVENT or event[4] == EventType.DELETE_FILE_EVENT:
            self.forget(file_id)
        if event[4] == EventType.DELETE_FILE_EVENT:
            return
        if event[4] == EventType.BEGIN_LOAD_QUERY_EVENT:
            self._files[file_id] = _File()
        file = self._file(file_id)
        file.has_backslashes |= b"\\" in block
        try:
            if not file.is_on_disk and self._in_memory + len(block) > _HELD:
                await asyncio.to_thread(file.spooled.rollover)
                file.is_on_disk = True
                self._in_memory -= file.size
            if file.is_on_disk:
                await asyncio.to_thread(file.spooled.write, block)
            else:
                file.spooled.write(block)
                self._in_memory += len(block)
        except OSError as error:
            raise _not_kept(error) from error
        file.size += len(block)

    async def pieces(self, file_id: int) -> AsyncIterator[bytes]:
        """Yield the contents of a file, from its beginning. Raises as `take` does."""
        file = self._file(file_id)
        try:
            file.spooled.seek(0)
            while piece := (
                await asyncio.to_thread(file.spooled.read, _PIECE)
                if file.is_on_disk
                else file.spooled.read(_PIECE)
            ):
                yield piece
        except OSError as error:
            raise _not_kept(error) from error

    def has_backslashes(self, file_id: int) -> bool:
        """Return whether a file contains the byte of a backslash."""
        file = self._files.get(file_id)
        return file is not None and file.has_backslashes

    def clear(self) -> None:
        """Forget all files: the transaction has ended."""
        for file_id in list(self._files):
            self.forget(file_id)

    def forget(self, file_id: int) -> None:
        """Let a file go, if it is there: its statement has been executed, or needs it no more."""
        file = self._files.pop(file_id, None)
        if file is not None:
            if not file.is_on_disk:
                self._in_memory -= file.size
            file.spooled.close()

    def _file(self, file_id: int) -> _File:
        file = self._files.get(file_id)
        if file is None:
            raise BinlogError(f"file {file_id} of a LOAD DATA statement has no beginning")
        return file


def _not_kept(error: OSError) -> NeedsPersonError:
    return NeedsPersonError(
        f"the file of a LOAD DATA statement cannot be kept in {tempfile.gettempdir()} until its"
        f" statement arrives: {error}. Make room there, or set TMPDIR to another folder"
    )
