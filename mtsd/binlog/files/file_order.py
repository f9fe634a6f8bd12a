"""Whether files follow each other as a server wrote them.

A copy may be in another's place, swapped or missing. The beginning and the end of each file show
it: a Rotate event names the next file, and what was executed before a file (Previous_gtids,
MariaDB's GTID_LIST) contains what was executed before the one in front of it, and in that one.
Without GTIDs, only the time at which a file was begun shows whether it is newer.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from mtsd.binlog.bytes.header import parse_header
from mtsd.binlog.events.dialect import dialect_of
from mtsd.binlog.files.file_beginning import read_description
from mtsd.binlog.files.file_end import FileEnd
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import Tail, whole_file
from mtsd.binlog.files.sync import FileContents
from mtsd.model.gtid import Gtid, GtidSet

_NUMBERED: Final = re.compile(r"(.+)\.([0-9]{6,})")


@dataclass(frozen=True, slots=True)
class FileBeginning:
    """The first events of a file. `by_a_server`: a server was started with it.

    `time` is when it was begun, in seconds since 1970. `previous` is what was executed before it,
    and `first` the GTID of its first group; None where this is not there (yet).
    """

    by_a_server: bool
    time: int
    previous: GtidSet | None = None
    first: Gtid | None = None


def file_beginning(contents: FileContents, name: str) -> FileBeginning:
    """Read the first events of a file up to its first group; `name` is the file's, for positions.

    Raises BinlogError and NotSupportedError as RangeReader does.
    """
    # The server may have written only a part of it so far.
    bounds = replace(whole_file(name, contents.size), tail=Tail.GROWING)
    reader = RangeReader(contents, bounds, name)
    dialect = dialect_of(reader.description.server_version)
    by_a_server = reader.description.created != 0
    time = parse_header(read_description(contents, name)).timestamp
    previous: GtidSet | None = None
    for placed in reader.events():
        code = placed.event[4]
        if code in dialect.previous_gtids:
            previous = dialect.previous_gtids[code](placed.event)
        elif code in dialect.heads:
            return FileBeginning(by_a_server, time, previous, dialect.parse_head(placed.event).gtid)
    return FileBeginning(by_a_server, time, previous)


def number_of(name: str) -> tuple[str, int] | None:
    """Return the base and the number of a file's name; None if it is not numbered."""
    match = _NUMBERED.fullmatch(name)
    return None if match is None else (match[1], int(match[2]))


def misnamed(name: str, end: FileEnd | None, following: str = "") -> str:
    """Return how a file's Rotate event contradicts its own name, or that of the file behind it.

    A file may have another base than the one that its server gave it, but not another number.
    """
    named = number_of(end.next_file) if end is not None and end.next_file else None
    if named is None or end is None:
        return ""
    for of, more in ((number_of(name), 1), (number_of(following), 0)):
        if of is not None and of[1] + more != named[1]:
            behind = "" if more else f", and {following} is behind it"
            return f"its end names {end.next_file} as the next file{behind}"
    return ""


def out_of_order(
    before: FileBeginning, end: FileEnd | None, name: str, after: FileBeginning
) -> str:
    """Return how the beginning of the file `name` contradicts the file in front of it."""
    if before.previous is None or after.previous is None:
        return ""
    if not after.previous:
        # A server may rotate several times in a second, and takes longer to start again.
        rotated = end is not None and bool(end.next_file)
        is_newer = after.time >= before.time if rotated else after.time > before.time
        return "" if is_newer else f"{name}, which is behind it, is not newer"
    if not _contains(after.previous, before.previous):
        return f"less was executed before {name}, which is behind it, than before it"
    if before.first is not None and before.first not in after.previous:
        return f"its transaction {before.first} was not executed before {name}, which is behind it"
    return ""


def _contains(after: GtidSet, before: GtidSet) -> bool:
    domains = {_domain(place): place.number for place in after.places()}
    if not domains:
        return before.issubset(after)
    # A domain may have been deleted in between (FLUSH BINARY LOGS DELETE_DOMAIN_ID).
    return all(
        place.number <= domains.get(_domain(place), place.number) for place in before.places()
    )


def _domain(place: Gtid) -> str:
    return place.uuid.partition("-")[0]
