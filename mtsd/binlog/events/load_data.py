"""The events of LOAD DATA in statement format.

Servers since 5.0.3 write the file as Begin_load_query and Append_block events (file id u32, then a
block), and then Execute_load_query, or Delete_file (file id u32) if the statement failed.
Execute_load_query is a Query event with, after its fixed part: file id u32, where in the statement
the name of the file begins and ends u32 each, what to do with duplicates u8 (MySQL documentation,
`mysql::binlog::event::Execute_load_query_event`). The other types are older.
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

from mtsd.binlog.bytes.event_type import EventType, type_name
from mtsd.binlog.bytes.header import HEADER_SIZE, parse_header
from mtsd.binlog.events.query import parse_query
from mtsd.binlog.sql.quoting import tokens_between
from mtsd.binlog.sql.tokenizer import SQL_MODE_NO_BACKSLASH_ESCAPES
from mtsd.model.errors import BinlogError
from mtsd.model.statement_text import Token, TokenKind
from mtsd.model.step import Duplicates, FromFile, QueryEvent

LOAD_DATA: dict[EventType, str] = {
    EventType.LOAD_EVENT: "Load",
    EventType.CREATE_FILE_EVENT: "Create_file",
    EventType.APPEND_BLOCK_EVENT: "Append_block",
    EventType.EXEC_LOAD_EVENT: "Exec_load",
    EventType.DELETE_FILE_EVENT: "Delete_file",
    EventType.NEW_LOAD_EVENT: "New_load",
    EventType.BEGIN_LOAD_QUERY_EVENT: "Begin_load_query",
    EventType.EXECUTE_LOAD_QUERY_EVENT: "Execute_load_query",
}
"""The types, with their names in MySQL's documentation."""

BEFORE_5_0 = frozenset({
    EventType.LOAD_EVENT.value, EventType.CREATE_FILE_EVENT.value,
    EventType.EXEC_LOAD_EVENT.value, EventType.NEW_LOAD_EVENT.value,
})  # fmt: skip
"""Only servers of versions 4.0 and 4.1 wrote them."""

_DATABASE_SIZE = HEADER_SIZE + 8
_QUERY_END = HEADER_SIZE + 13
_ADDED = struct.Struct("<IIIB")
_ADDED_END = _QUERY_END + _ADDED.size
_BLOCK = HEADER_SIZE + 4


@dataclass(frozen=True, slots=True)
class LoadData:
    """A part of a LOAD DATA statement.

    `file_id` is None in events of 4.0 and 4.1; `block_size`, in bytes, is None unless the event has
    a block of the file. `query` is the statement, if the event has it, and `duplicates` what that
    does with rows whose key exists.
    """

    type: EventType
    file_id: int | None = None
    block_size: int | None = None
    query: QueryEvent | None = None
    duplicates: Duplicates | None = None


def parse_load_data(event: bytes) -> LoadData:
    """Decode an event of LOAD DATA, by its name only if a server before 5.0 wrote it.

    Raises BinlogError if it is truncated or does not belong to LOAD DATA.
    """
    code = parse_header(event).type
    if code not in LOAD_DATA:
        raise BinlogError(f"{type_name(code)} is not an event of LOAD DATA")
    kind = EventType(code)
    if code in BEFORE_5_0:
        return LoadData(kind)
    if kind is EventType.EXECUTE_LOAD_QUERY_EVENT:
        query, file = parse_execute_load_query(event)
        return LoadData(kind, file.file_id, query=query, duplicates=file.duplicates)
    file_id, block = parse_block(event)
    size = None if kind is EventType.DELETE_FILE_EVENT else len(block)
    return LoadData(kind, file_id, size)


def parse_execute_load_query(
    event: bytes, parse: Callable[[bytes], QueryEvent] = parse_query
) -> tuple[QueryEvent, FromFile]:
    """Decode an Execute_load_query event; `parse` decodes the Query events of its dialect.

    Raises BinlogError as `parse_query` does.
    """
    what = LOAD_DATA[EventType.EXECUTE_LOAD_QUERY_EVENT]
    if len(event) < _ADDED_END:
        raise BinlogError(f"{what} event: {len(event)} bytes, fewer than its fixed part")
    file_id, start, end, duplicates = _ADDED.unpack_from(event, _QUERY_END)
    query = parse(event[:_QUERY_END] + event[_ADDED_END:])
    # Something may have been removed from the beginning of the statement.
    status = int.from_bytes(event[_QUERY_END - 2 : _QUERY_END], "little")
    removed = len(event) - _ADDED_END - status - event[_DATABASE_SIZE] - 1 - len(query.statement)
    start -= removed
    end -= removed
    if not 0 <= start <= end <= len(query.statement):
        raise BinlogError(f"{what} event: the file's name is at {start} to {end} of its statement")
    try:
        return query, FromFile(file_id, start, end, Duplicates(duplicates))
    except ValueError:
        raise BinlogError(f"{what} event: unknown handling of duplicates {duplicates}") from None


def failed_after_a_part(query: QueryEvent) -> str:
    """Return that a LOAD DATA has failed on the source, as what its group contains; "" if not."""
    if not query.error_code:
        return ""
    return (
        f"a LOAD DATA that failed on the source with error {query.error_code} after a part of its"
        " rows"
    )


def parse_block(event: bytes) -> tuple[int, bytes]:
    """Return file id and contents of a Begin_load_query or Append_block event, or Delete_file.

    Raises BinlogError if it is truncated.
    """
    if len(event) < _BLOCK:
        raise BinlogError(f"{type_name(event[4])}: {len(event)} bytes, fewer than its fixed part")
    return int.from_bytes(event[HEADER_SIZE:_BLOCK], "little"), event[_BLOCK:]


_FORMAT = re.compile(
    rb"(?: [^'`] | `(?:[^`]|``)*` )*?"
    rb"\ FIELDS\ TERMINATED\ BY\ %b (?:\ OPTIONALLY\ ?)? \ ENCLOSED\ BY\ %b"
    rb"\ ESCAPED\ BY\ %b \ LINES\ TERMINATED\ BY\ %b (?:\ STARTING\ BY\ %b)?"
    % ((rb"'((?:[^'\\]|\\.)*)'",) * 5),
    re.DOTALL | re.VERBOSE,
)
"""What a source writes between the name of the file and the columns."""
_FARTHEST = 1 << 20
"""Bytes up to its end: a table has at most 8192 partitions, whose names may come before it."""
_OF_THE_FILE = re.compile(
    rb"(?:LOW_PRIORITY |CONCURRENT )?(?:LOCAL )?(?:INFILE )?name(?: REPLACE| IGNORE)? INTO"
)
_SHOWN = 80
_ESCAPED_BY = 3
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_MEANT = {b"0": b"\0", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"r": b"\r", b"Z": b"\x1a"}


def sent_by_client(query: QueryEvent, file: FromFile, duplicates: Duplicates) -> bytes:
    """Return a LOAD DATA statement whose file comes from the client, for its SQL mode.

    Raises BinlogError if anything but the name of the file would be replaced.
    """
    tokens = tokens_between(query.text, file.name_start, file.name_end)
    if tokens is None or not _OF_THE_FILE.fullmatch(b" ".join(map(_described, tokens))):
        raise BinlogError(
            f"{LOAD_DATA[EventType.EXECUTE_LOAD_QUERY_EVENT]} event: bytes {file.name_start} to"
            f" {file.name_end} of its statement are not the name of a file, up to INTO:"
            f" {query.statement[file.name_start : file.name_end][:_SHOWN]!r}"
        )
    handling = {Duplicates.IGNORE: b" IGNORE", Duplicates.REPLACE: b" REPLACE"}
    rest = query.statement[file.name_end :]
    if _knows_no_backslash(query):
        rest = _without_backslashes(rest)
    return b"%b LOCAL INFILE 'mtsd'%b INTO%b" % (
        query.statement[: file.name_start],
        handling.get(duplicates, b""),
        rest,
    )


def _described(token: Token) -> bytes:
    return b"name" if token.kind is TokenKind.QUOTED else token.text


def may_mean_backslashes(query: QueryEvent, file: FromFile) -> bool:
    r"""Return whether a backslash in the file may have been one, or an escape, on the source.

    Where its SQL mode knows no backslash, a source without ESCAPED BY takes backslashes as they
    are, and writes the same as with `ESCAPED BY '\'`.
    """
    end = file.name_end + _FARTHEST
    statement = query.statement
    match = _FORMAT.match(statement, file.name_end, end) if _knows_no_backslash(query) else None
    return match is not None and match[_ESCAPED_BY] == b"\\\\"


def _knows_no_backslash(query: QueryEvent) -> bool:
    return bool((query.context.sql_mode or 0) & SQL_MODE_NO_BACKSLASH_ESCAPES)


def _without_backslashes(rest: bytes) -> bytes:
    r"""Return what follows the name of the file, with separators that need no escapes.

    A source writes them itself, with escapes (`'\t'`) whatever its SQL mode; what follows them is
    the text of its client.
    """
    match = _FORMAT.match(rest, 0, _FARTHEST)
    if match is None:
        return rest
    pieces, copied = [], 0
    for number in range(1, 1 + len(match.groups())):
        text = match[number]
        if text is not None and b"\\" in text:
            start, end = match.span(number)
            meant = _ESCAPED.sub(lambda each: _MEANT.get(each[1], each[1]), text)
            pieces += [rest[copied : start - 1], b"X'%b'" % meant.hex().encode()]
            copied = end + 1
    return b"".join([*pieces, rest[copied:]])
