"""Which program has written a copy's file, and what the file says: `position set --from`."""

import sys
from pathlib import Path
from typing import Final

from mtsd.model.errors import NeedsPersonError
from mtsd.operations.copies.backup_info import is_backup_info, parse_backup_info
from mtsd.operations.copies.copied import Copied
from mtsd.operations.copies.mydumper import is_metadata, parse_metadata
from mtsd.operations.copies.replica_text import is_replica_text, parse_replica_text
from mtsd.operations.copies.shell_dump import is_shell_dump, parse_shell_dump
from mtsd.operations.copies.sql_dump import is_sql_dump, parse_sql_dump

STANDARD_INPUT: Final = Path("-")
_PART_BYTES: Final = 1 << 20
_NAMES: Final = (
    "metadata",
    "@.json",
    "xtrabackup_binlog_info",
    "mariadb_backup_binlog_info",
)
_COMPRESSED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18")


def read_copied(path: Path) -> tuple[Copied, ...]:
    """Return the places that a file names, or that of a folder which a program has filled.

    Of a large file only the beginning and the end are read. Raises NeedsPersonError.
    """
    try:
        file = _file_in(path) if path.is_dir() else path
        head, tail = _read(file)
    except OSError as error:
        raise NeedsPersonError(f"{path} cannot be read: {error.strerror}") from None
    if head.startswith(_COMPRESSED):
        raise NeedsPersonError(
            f"{file} is compressed: give its beginning to mtsd position set --from -, for example"
            " with zcat FILE | head -c 1000000"
        )
    try:
        return parse_copied(_text(head), _text(tail))
    except ValueError as error:
        raise NeedsPersonError(f"{file}: {error}") from None


def parse_copied(head: str, tail: str = "") -> tuple[Copied, ...]:
    """Parse the beginning and the end of whatever file it is. Raises ValueError with the reason."""
    if is_shell_dump(head):
        return (parse_shell_dump(head),)
    if is_metadata(head):
        return parse_metadata(head)
    if is_backup_info(head):
        return (parse_backup_info(head),)
    if is_sql_dump(head):
        return (parse_sql_dump(head, tail),)
    if is_replica_text(head):
        return parse_replica_text(head)
    raise ValueError(
        "not a file of a copy that is known: a dump by mysqldump or mariadb-dump, mydumper's"
        " metadata, MySQL Shell's @.json, xtrabackup_binlog_info, or what SHOW REPLICA STATUS\\G"
        " prints"
    )


def _file_in(folder: Path) -> Path:
    if (folder / "metadata.partial").exists():
        raise NeedsPersonError(f"{folder}: mydumper has not finished, metadata.partial is there")
    if (folder / "@.json").exists() and not (folder / "@.done.json").exists():
        raise NeedsPersonError(f"{folder}: MySQL Shell has not finished, @.done.json is missing")
    files = [folder / name for name in _NAMES if (folder / name).exists()]
    if not files:
        raise NeedsPersonError(f"{folder} has none of {', '.join(_NAMES)}: name the file")
    return files[0]


def _read(file: Path) -> tuple[bytes, bytes]:
    if file == STANDARD_INPUT:
        return sys.stdin.buffer.read(_PART_BYTES), b""
    with file.open("rb") as opened:
        head = opened.read(_PART_BYTES)
        size = opened.seek(0, 2)
        opened.seek(max(len(head), size - _PART_BYTES))
        return head, opened.read()


def _text(part: bytes) -> str:
    return part.decode("utf-8", "replace")
