"""Binary log files to list, either local or on the source."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from mtsd.binlog.framing import FileFramer
from mtsd.binlog.index_files import without_indexes
from mtsd.cli.arguments import load_configuration
from mtsd.replica.endpoints import endpoint
from mtsd.source.binlog_files import BinlogFileReader, list_files
from mtsd.source.source_state import BinlogFile
from mtsd.wire.endpoint import Endpoint

_PIECE = 1 << 20


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

    def events(self) -> Iterator[bytes]:
        """Yield its events with their checksums."""
        ...


class LocalFile:
    """A file on this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = path.name
        self.size = path.stat().st_size

    def events(self) -> Iterator[bytes]:
        """Yield its events with their checksums."""
        framer = FileFramer()
        with self._path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield from framer.feed(piece)
        framer.finish()


def local_files(paths: Sequence[Path]) -> list[LocalFile]:
    """Return the files at these paths, which a shell may have found by a pattern."""
    return [LocalFile(Path(path)) for path in without_indexes(list(map(str, paths)))]


class SourceFile:
    """A file that the source sends."""

    def __init__(self, endpoint: Endpoint, file: BinlogFile) -> None:
        self._endpoint = endpoint
        self._file = file
        self.name = file.name
        self.size = file.size

    def events(self) -> Iterator[bytes]:
        """Yield its events with their checksums."""
        with asyncio.Runner() as runner:
            reader = runner.run(BinlogFileReader.open(self._endpoint, self._file))
            try:
                while events := runner.run(reader.read()):
                    yield from events
            finally:
                reader.close()


def files_of_source(args: argparse.Namespace) -> Sequence[ListedFile]:
    """Return the files named in `args`, or all; raises FileNotFoundError for a missing one."""
    source = endpoint("source", load_configuration(args).settings.source)
    found = {file.name: file for file in asyncio.run(list_files(source))}
    wanted = [str(path) for path in args.files] or list(found)
    for name in wanted:
        if name not in found:
            raise FileNotFoundError(f"the source has no binary log {name}")
    return [SourceFile(source, found[name]) for name in wanted]
