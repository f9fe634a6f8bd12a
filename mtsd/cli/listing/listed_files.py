"""Binary log files to list, either local or on the source."""

import asyncio
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Protocol

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.files.index_files import without_indexes
from mtsd.config import Settings
from mtsd.model.errors import BinlogError
from mtsd.model.position import FIRST_EVENT
from mtsd.replica.core.endpoints import endpoint
from mtsd.source.binlog_files import BinlogFileReader, list_files
from mtsd.source.source_state import BinlogFile
from mtsd.wire.endpoint import Endpoint

_PIECE = 1 << 20
_FORMAT_DESCRIPTION = EventType.FORMAT_DESCRIPTION_EVENT


class ListedFile(Protocol):
    """A binary log file, wherever it is."""

    @property
    def name(self) -> str:
        """The file's name, without a folder."""
        ...

    @property
    def size(self) -> int:
        """Its size in bytes."""
        ...

    def events(self, start: int = FIRST_EVENT) -> Generator[bytes, None, None]:
        """Yield its events with their checksums, from the one that begins at `start`."""
        ...


class LocalFile:
    """A file on this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = path.name
        try:
            self.size = path.stat().st_size
        except OSError as error:
            reason = error.strerror or "it cannot be read"
            raise type(error)(
                f"there is no binary log file {path} on this machine ({reason}); one of the"
                " source's is read with --config"
            ) from error

    def events(self, start: int = FIRST_EVENT) -> Generator[bytes, None, None]:
        """Yield its events with their checksums, from the one that begins at `start`.

        Raises BinlogError, which names the file, where it is cut off or none.
        """
        from_within = start > FIRST_EVENT
        framer = FileFramer(at_start=not from_within, offset=start)
        try:
            with self._path.open("rb") as file:
                if from_within:
                    file.seek(start)
                while piece := file.read(_PIECE):
                    yield from framer.feed(piece)
            framer.finish()
        except BinlogError as error:
            raise BinlogError(f"{self._path}: {error}") from error


def local_files(paths: Sequence[Path]) -> list[LocalFile]:
    """Return the files at these paths, which a shell may have found by a pattern.

    Raises FileNotFoundError, and OSError for what is no file that can be read.
    """
    return [LocalFile(Path(path)) for path in without_indexes(list(map(str, paths)))]


class SourceFile:
    """A file that the source sends."""

    def __init__(self, endpoint: Endpoint, file: BinlogFile) -> None:
        self._endpoint = endpoint
        self._file = file
        self.name = file.name
        self.size = file.size

    def events(self, start: int = FIRST_EVENT) -> Generator[bytes, None, None]:
        """Yield its events with their checksums, from the one that begins at `start`."""
        with asyncio.Runner() as runner:
            reader = runner.run(BinlogFileReader.open(self._endpoint, self._file, offset=start))
            try:
                while events := runner.run(reader.read()):
                    for event in events:
                        # Where a dump begins within the file, the source repeats it.
                        if start == FIRST_EVENT or event[4] != _FORMAT_DESCRIPTION:
                            yield event
            finally:
                reader.close()


def files_of_source(settings: Settings, names: Sequence[Path]) -> Sequence[ListedFile]:
    """Return the source's files of these names, or all; raises FileNotFoundError."""
    source = endpoint("source", settings.source)
    by_name = {file.name: file for file in asyncio.run(list_files(source))}
    wanted = [str(path) for path in names] or list(by_name)
    for name in wanted:
        if name not in by_name:
            raise FileNotFoundError(
                f"the source has no binary log {name}: its files are {_range(list(by_name))}"
            )
    return [SourceFile(source, by_name[name]) for name in wanted]


def _range(names: Sequence[str]) -> str:
    return f"{names[0]} to {names[-1]}" if names else "none"
