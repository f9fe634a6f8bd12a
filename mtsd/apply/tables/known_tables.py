"""What a session has found out about the tables that row events name.

Entries are keyed by Table_map event: a source gives every definition a table id of its own, so a
table altered by replicated DDL appears with another id, and so does one that a new foreign key
refers to (measured with MySQL 9.7).
"""

from collections.abc import Collection, Iterable
from typing import Final

from mtsd.binlog.events.table_map import database_of
from mtsd.model.names import folded

_MANY: Final = 8192


class KnownTables:
    """Tables that are plain, and those that are not, with a word on each of them."""

    __slots__ = ("_most", "_plain", "_special")

    def __init__(self, *, most: int = _MANY) -> None:
        """`most`: how many it remembers, approximately."""
        self._most = most
        self._plain: set[bytes] = set()
        self._special: dict[bytes, str] = {}

    def are_plain(self, table_maps: Collection[bytes]) -> bool:
        """Return whether all these tables are known to be plain."""
        return self._plain.issuperset(table_maps)

    def are_known(self, table_maps: Collection[bytes]) -> bool:
        """Return whether all these tables are known."""
        return self.are_plain(table_maps) or not self.unknown(table_maps)

    def special(self, table_maps: Iterable[bytes]) -> dict[bytes, str]:
        """Return those of the tables that are known not to be plain, with what was noted."""
        found = self._special
        return {event: found[event] for event in table_maps if event in found}

    def note(self, table_map: bytes, what: str) -> None:
        """Note what a table is; "": plain."""
        if what:
            self._special[table_map] = what
        else:
            self._plain.add(table_map)

    def unknown(self, table_maps: Iterable[bytes]) -> list[bytes]:
        """Return those of the tables that are not known."""
        return [
            event for event in table_maps if event not in self._plain and event not in self._special
        ]

    def make_room(self) -> bool:
        """Forget all tables if there are too many; return whether there were.

        Before it is decided which are unknown.
        """
        is_full = len(self._plain) + len(self._special) > self._most
        if is_full:
            self.clear()
        return is_full

    def clear(self) -> None:
        """Forget all tables."""
        self._plain.clear()
        self._special.clear()

    def forget(self, table_maps: Iterable[bytes]) -> None:
        """Forget these tables."""
        for event in table_maps:
            self._plain.discard(event)
            self._special.pop(event, None)

    def forget_in(self, databases: Collection[str]) -> None:
        """Forget the tables of these databases."""
        self.forget(of_databases([*self._plain, *self._special], databases))


def of_databases(table_maps: Iterable[bytes], databases: Collection[str]) -> list[bytes]:
    """Return the tables that are in one of these databases, in whatever case it is named."""
    if not databases:
        return []
    names = set(map(folded, databases))
    return [event for event in table_maps if folded(database_of(event)) in names]
