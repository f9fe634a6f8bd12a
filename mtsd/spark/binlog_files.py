"""Binary log files in a folder, or wherever else fsspec can list and open them."""

import glob
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Final

from mtsd.binlog.index_files import without_indexes
from mtsd.binlog.ranges import ByteRange
from mtsd.model.position import Position
from mtsd.spark.logs import FilesError, name_of

_NUMBERED: Final = re.compile(r"(?!aria_log\.)(.+)\.\d{6,}")
"""MariaDB numbers the log of its storage engine Aria, too."""
_PATTERN: Final = re.compile(r"[*?\[]")
_TRIES: Final = 5
"""How often files are listed if one of them is gone before its size is known."""


def listed(path: str) -> list[tuple[str, int]]:
    """Return the files that a path, folder or pattern names, with their sizes, in log order.

    From a folder, only the numbered files are taken (binlog.000001 and so on). Raises FilesError
    if there are no files or they cannot be listed, or if a folder contains several logs or has a
    gap in the numbering.
    """
    try:
        found, is_folder = _listed(path)
    except OSError as error:
        place = error.filename or path
        raise FilesError(f"{place} cannot be read: {error.strerror or error}") from error
    if not found:
        raise FilesError(f"there are no binary logs at {path}")
    found.sort(key=lambda file: Position(name_of(file[0]), 0))
    if is_folder:
        _check_folder(path, [name_of(file) for file, _ in found])
    return found


def _listed(path: str) -> tuple[list[tuple[str, int]], bool]:
    """Return files and their sizes, and whether they are those of a folder."""
    for _ in range(_TRIES - 1):
        # A purge may remove files after their names were listed; then all are listed anew.
        with suppress(FileNotFoundError):
            return _listed_once(path)
    return _listed_once(path)


def _listed_once(path: str) -> tuple[list[tuple[str, int]], bool]:
    if _is_remote(path):
        return _listed_remotely(path)
    return _listed_here(path.removeprefix("file://"))


def _check_folder(path: str, names: list[str]) -> None:
    bases = sorted({name.rpartition(".")[0] for name in names})
    if len(bases) > 1:
        patterns = " or ".join(f"{base}.[0-9]*" for base in bases)
        raise FilesError(f"{path} has several logs: say which, by a pattern: {patterns}")
    numbers = [int(name.rpartition(".")[2]) for name in names]
    for before, after, name in zip(numbers, numbers[1:], names[1:], strict=False):
        if after != before + 1:
            raise FilesError(
                f"{path}: the files before {name}, from number {before + 1}, are missing"
            )


def _listed_here(path: str) -> tuple[list[tuple[str, int]], bool]:
    place = Path(path)
    if place.is_dir():
        # Names before sizes: a file that has a successor no longer grows.
        # Others are not asked for: a server has some only for a moment, such as binlog.~rec~.
        files = [file for file in place.iterdir() if _NUMBERED.fullmatch(file.name)]
        return [(str(file), file.stat().st_size) for file in files], True
    if place.exists():
        return [(path, place.stat().st_size)], False
    names = without_indexes(glob.glob(path)) if _PATTERN.search(path) else []  # noqa: PTH207
    return [(name, Path(name).stat().st_size) for name in names], False


def _is_remote(path: str) -> bool:
    return "://" in path and not path.startswith("file://")


def _listed_remotely(path: str) -> tuple[list[tuple[str, int]], bool]:
    system, inside = _fsspec().core.url_to_fs(path)
    # Most file systems cache listings, but a stream needs to see new files.
    system.invalidate_cache()
    if _PATTERN.search(inside):
        names, is_folder = without_indexes(system.glob(inside)), False
    elif system.isdir(inside):
        names = [
            one for one in system.ls(inside, detail=False) if _NUMBERED.fullmatch(name_of(one))
        ]
        is_folder = True
    else:
        names, is_folder = ([inside] if system.exists(inside) else []), False
    found = [
        (str(system.unstrip_protocol(name)), int(system.size(name) or 0))
        for name in names
        if not system.isdir(name)
    ]
    return found, is_folder


def _fsspec() -> ModuleType:
    # fsspec is optional: only addresses need it.
    try:
        return import_module("fsspec")
    except ModuleNotFoundError as error:
        raise FilesError(
            "an address needs fsspec, here and on the executors: pip install fsspec"
        ) from error


class OpenFile:
    """The bytes of a file up to its planned size, in the form `mtsd.binlog.sync` reads."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self.size = size
        self.has_more = file.seek(0, 2) > size

    def read(self, at: int, count: int) -> bytes:
        """Return `count` bytes starting at byte `at`, fewer only at the end."""
        self._file.seek(at)
        wanted = max(0, min(count, self.size - at))
        pieces: list[bytes] = []
        while wanted:
            piece = self._file.read(wanted)
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
        return b"".join(pieces)


@contextmanager
def opened(bounds: ByteRange) -> Iterator[OpenFile]:
    """Open the file of a range; raises FilesError if that fails."""
    path = bounds.file
    try:
        if _is_remote(path):
            with _fsspec().open(path, "rb") as remote:
                yield OpenFile(remote, bounds.size)
        else:
            with Path(path).open("rb") as file:
                yield OpenFile(file, bounds.size)
    except OSError as error:
        raise FilesError(f"{path} cannot be read: {error.strerror or error}") from error
