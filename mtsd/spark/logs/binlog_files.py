"""Binary log files in a folder, or wherever else fsspec can list and open them."""

import glob
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Final, NamedTuple

from mtsd.binlog.files.file_order import number_of
from mtsd.binlog.files.ranges import ByteRange
from mtsd.model.errors import MtsdError
from mtsd.model.position import Position
from mtsd.spark.logs.logs import FilesError, name_of

_OTHER_LOG: Final = re.compile(r"aria_log\..+")
"""MariaDB numbers the log of its storage engine Aria, too."""
_BESIDE: Final = re.compile(r"(.+)\.([0-9]{6,})[^0-9].*")
"""A file that is named after a binary log: a copy, one that is being copied, or a packed one."""
_PACKED: Final = (".7z", ".br", ".bz2", ".gpg", ".gz", ".lz4", ".lzma", ".xz", ".zip", ".zst")
_KEPT_BY_SERVERS: Final = (".index", ".state", ".idx")
"""What servers keep beside their binary logs: lists of them, and MariaDB's state and indexes."""
_PATTERN: Final = re.compile(r"[*?\[]")
_FILE_URI: Final = re.compile(r"^file:(?://)?")
"""Spark's catalog writes file:/var/lib, others file:///var/lib."""
_TRIES: Final = 5
"""How often files are listed if one of them is gone before its size is known."""


class _Found(NamedTuple):
    """The files at a path, with their sizes, and the names of others that are named after them."""

    files: list[tuple[str, int]]
    beside: list[str] = []  # noqa: RUF012 - never changed


def listed(*paths: str) -> list[tuple[str, int]]:
    """Return the files that paths, folders or patterns name, with their sizes, in log order.

    From a folder, only the numbered files are taken (binlog.000001 and so on). Raises FilesError
    if there are no files or they cannot be listed, or if several are not those of one log, without
    gaps.
    """
    listing = [_listed(path) for path in paths]
    files = [file for one in listing for file in one.files]
    where = ", ".join(paths)
    if not files:
        raise FilesError(
            f"there are no binary logs at {where}: a file, a folder of numbered files"
            " (binlog.000001) or a pattern"
        )
    files.sort(key=lambda file: Position(name_of(file[0]), 0))
    names = [name_of(file) for file, _ in files]
    beside = [name for one in listing for name in one.beside]
    if len(files) > 1 or beside:
        _check_order(where, names, beside)
    return files


def left_out(*paths: str) -> list[str]:
    """Return the names of files in folders that are named after a binary log, and not read."""
    return [name for path in paths for name in _listed(path).beside]


def _listed(path: str) -> _Found:
    try:
        for _ in range(_TRIES - 1):
            # A purge may remove files after their names were listed; then all are listed anew.
            with suppress(FileNotFoundError):
                return _listed_once(path)
        return _listed_once(path)
    except OSError as error:
        place = error.filename or path
        raise FilesError(f"{place} cannot be read: {error.strerror or error}") from error
    except Exception as error:
        raise _of_address(path, error) from error


def _of_address(path: str, error: Exception) -> Exception:
    """Return the error of an address: each file system of fsspec has exceptions of its own."""
    if isinstance(error, MtsdError) or not is_remote(path):
        return error
    return FilesError(f"{path} cannot be read: {str(error) or type(error).__name__}")


def _listed_once(path: str) -> _Found:
    if is_remote(path):
        return _listed_remotely(path)
    return _listed_here(without_scheme(path))


def _check_order(where: str, names: list[str], beside: list[str]) -> None:
    """Check that files are those of one log; a file `beside` them may stand for one of it."""
    places = [number_of(name) for name in names]
    for name, place in zip(names, places, strict=True):
        if place is None:
            raise FilesError(
                f"{where}: {name} is not named like a binary log, with a number at the end"
                " (binlog.000001), as files that are read together have to be: leave it out, and"
                " unpack it if it is compressed"
            )
    numbered = [place for place in places if place is not None]
    bases = sorted({base for base, _ in numbered})
    if len(bases) > 1:
        patterns = " or ".join(f"{base}.[0-9]*" for base in bases)
        raise FilesError(f"{where} has several logs: say which, by a pattern: {patterns}")
    numbers = [number for _, number in numbered]
    packed = {
        int(match[2]): name
        for name in beside
        if name.endswith(_PACKED) and (match := _BESIDE.fullmatch(name))
    }
    others = {number: name for number, name in packed.items() if number > numbers[0]}
    for before, after, name in zip(numbers, numbers[1:], names[1:], strict=False):
        if after == before:
            raise FilesError(f"{where}: {name} is there twice")
        if after != before + 1 and before + 1 not in others:
            raise FilesError(
                f"{where}: the files before {name}, from number {before + 1}, are missing"
            )
    for number, name in others.items():
        if number not in numbers:
            raise FilesError(
                f"{where}: {name} is packed, and without it a part of the log is missing: unpack"
                " it, or read what is before and after it each by a pattern"
            )


def _of_names(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return which of the names in a folder are binary logs, and which are named after one."""
    logs = [one for one in names if number_of(name_of(one)) and not _is_of_server(one)]
    bases = {number[0] for one in logs if (number := number_of(name_of(one)))}
    beside = [
        name_of(one)
        for one in names
        if not _is_of_server(one)
        and (match := _BESIDE.fullmatch(name_of(one)))
        and match[1] in bases
    ]
    return logs, sorted(beside)


def _is_of_server(name: str) -> bool:
    return name.endswith(_KEPT_BY_SERVERS) or bool(_OTHER_LOG.fullmatch(name_of(name)))


def _listed_here(path: str) -> _Found:
    place = Path(path)
    if place.is_dir():
        # Names before sizes: a file that has a successor no longer grows.
        # Others are not asked for: a server has some only for a moment, such as binlog.~rec~.
        logs, beside = _of_names([str(file) for file in place.iterdir()])
        return _Found([(file, Path(file).stat().st_size) for file in logs], beside)
    if place.exists():
        return _Found([(path, place.stat().st_size)])
    names = glob.glob(path) if _PATTERN.search(path) else []  # noqa: PTH207
    return _Found([
        (name, Path(name).stat().st_size) for name in names if not _is_of_server(name)
    ])  # fmt: skip


def without_scheme(path: str) -> str:
    """Return the path of a file on this machine."""
    return _FILE_URI.sub("", path)


def is_remote(path: str) -> bool:
    """Tell whether fsspec opens a path, and not this machine."""
    return "://" in path and not path.startswith("file://")


def _listed_remotely(path: str) -> _Found:
    system, inside = _fsspec().core.url_to_fs(path)
    # Most file systems cache listings, but a stream needs to see new files.
    system.invalidate_cache()
    beside: list[str] = []
    if _PATTERN.search(inside):
        names = [one for one in system.glob(inside) if not _is_of_server(one)]
    elif system.isdir(inside):
        names, beside = _of_names(system.ls(inside, detail=False))
    else:
        names = [inside] if system.exists(inside) else []
    found = [
        (str(system.unstrip_protocol(name)), int(system.size(name) or 0))
        for name in names
        if not system.isdir(name)
    ]
    return _Found(found, beside)


def _fsspec() -> ModuleType:
    # fsspec is optional: only addresses need it.
    try:
        return import_module("fsspec")
    except ModuleNotFoundError as error:
        raise FilesError(
            "an address needs fsspec, here and on the executors: pip install fsspec"
        ) from error


def _opened_remotely(path: str) -> BinaryIO:
    try:
        file: BinaryIO = _fsspec().open(path, "rb").open()
    except OSError:
        raise
    except Exception as error:
        raise _of_address(path, error) from error
    return file


class OpenFile:
    """The bytes of a file up to its planned size, in the form `mtsd.binlog.files.sync` reads."""

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
        if is_remote(path):
            with _opened_remotely(path) as remote:
                yield OpenFile(remote, bounds.size)
        else:
            with Path(path).open("rb") as file:
                yield OpenFile(file, bounds.size)
    except OSError as error:
        raise FilesError(f"{path} cannot be read: {error.strerror or error}") from error
