"""SQL that means the same in every sql_mode and character set: only hex literals and numbers."""

import re
from collections.abc import Collection, Sequence

from mtsd.binlog.sql.quoting import quoted as in_session
from mtsd.model.position import Position

_NAME = re.compile(r"[0-9A-Za-z_$]{1,64}")


def text(value: str) -> bytes:
    """Return a literal with the UTF-8 bytes of a string; a binary string to the server."""
    return b"X'" + value.encode("utf-8", "surrogateescape").hex().encode() + b"'"


def utf8(value: str) -> bytes:
    """Return a literal of a string that compares as names do, not as bytes."""
    return b"_utf8mb4 " + text(value)


def tables(names: Collection[tuple[str, str]]) -> bytes:
    """Return what is in the list of `(table_schema,table_name) IN (…)` for databases and tables."""
    return b",".join(b"(%b,%b)" % (utf8(database), utf8(name)) for database, name in sorted(names))


def blob(value: bytes) -> bytes:
    """Return a literal of bytes."""
    return b"X'" + value.hex().encode() + b"'"


def nullable(value: str | None) -> bytes:
    """Return a literal of a string, or NULL."""
    return b"NULL" if value is None else text(value)


def number(value: object) -> int:
    """Return a number that the server sent as a number. Raises TypeError on anything else."""
    if not isinstance(value, int):
        raise TypeError(f"expected a number, not {value!r}")
    return value


def name(identifier: str) -> bytes:
    """Return a quoted identifier of plain characters. Raises ValueError on others."""
    if not _NAME.fullmatch(identifier):
        raise ValueError(f"not a plain identifier: {identifier!r}")
    return b"`" + identifier.encode() + b"`"


def shown_name(identifier: str) -> str:
    """Quote any identifier, for a statement that is displayed."""
    return "`" + identifier.replace("`", "``") + "`"


def quoted(identifier: str) -> bytes:
    """Quote any identifier, for a statement that is sent in the pinned state of a session.

    Raises NotSupportedError as `mtsd.binlog.sql.quoting.quoted` does.
    """
    return in_session(identifier, None)


def shown_text(value: str) -> str:
    """Quote any string, for a statement that is displayed."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def bare_name(quoted: str) -> str:
    """Return the identifier that `shown_name` has quoted."""
    return quoted[1:-1].replace("``", "`")


def place(position: Position | None) -> tuple[bytes, bytes]:
    """Return the literals of a position's file and offset, or of "" and 0 for None."""
    if position is None:
        return b"X''", b"0"
    return text(position.file), b"%d" % position.offset


def assignments(columns: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return `a=1,b=2` for names and literals."""
    return b",".join(b"%b=%b" % pair for pair in columns)


def insert(table: bytes, columns: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return an INSERT of one row."""
    return b"INSERT INTO %b (%b) VALUES (%b)" % (
        table,
        b",".join(column for column, _ in columns),
        b",".join(value for _, value in columns),
    )
