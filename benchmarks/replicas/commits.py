"""When a server committed what, according to its own binlog.

The commit times are those of the GTID events, in µs since 1970: the server reads its clock when it
writes a transaction to the binlog, right before it syncs. Source and targets do so at the same
stage, so the differences between them are lags.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.groups.grouper import Grouper
from mtsd.filter.filter import Filter
from mtsd.model.group import Group, GroupClosed, GroupKind
from mtsd.model.position import Position
from tests.servers.mysqld import Server

_PIECE = 1 << 20
_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class Span:
    """The commits of the load in a binlog: first and last in µs since 1970, and how many."""

    first: int
    last: int
    transactions: int


def groups(server: Server) -> Iterator[Group]:
    """Yield what the server has committed, except what concerns only the position tables.

    Large groups come without their events.
    """
    for row in server.sql("SHOW BINARY LOGS"):
        name = str(row[0])
        grouper = Grouper(
            start=Position(name, 4),
            next_number=1,
            checksums=False,
            hold_bytes=_PIECE,
            chunk_bytes=_PIECE,
            replicated=Filter(position_schema="mtsd"),
        )
        framer = FileFramer()
        with (server.datadir / name).open("rb") as file:
            while piece := file.read(_PIECE):
                for item in grouper.groups(list(framer.feed(piece))):
                    group = item.group if isinstance(item, GroupClosed) else item
                    if isinstance(group, Group) and (
                        group.databases or group.kind is GroupKind.XA_COMPLETE
                    ):
                        yield group


def span(server: Server, databases: Collection[str]) -> Span:
    """Return the span of the commits of rows in one of the databases; ValueError if none.

    Those of tables without transactions count, too.

    An XA transaction, such as a branch of one that is split, counts when it is prepared and when it
    is committed.
    """
    times = [
        group.commit_time
        for group in groups(server)
        if group.kind is GroupKind.XA_COMPLETE
        or (group.kind in _OF_ROWS and group.databases[0] in databases)
    ]
    return Span(min(times), max(times), len(times))


_OF_ROWS: Final = frozenset({
    GroupKind.ROWS, GroupKind.NON_TRANSACTIONAL, GroupKind.XA_PREPARE,
})  # fmt: skip
