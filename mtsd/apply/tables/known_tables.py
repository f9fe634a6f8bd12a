"""What the daemon knows about the tables that row events name: read once, for all its sessions.

It is found by Table_map event: a source gives every definition a table id of its own, so a table
altered by replicated DDL appears with another id, and so does one that a new foreign key refers to
(measured with MySQL 9.7). With a new id a table is looked at again, because the target's may be
another one, too; but ids of one table that come within a moment, as several sessions meet it or a
source opens its tables anew, share one reading.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from mtsd.apply.session.family import TARGETS
from mtsd.apply.tables.computed_tables import is_computed
from mtsd.apply.tables.facts import Name, TableFacts
from mtsd.apply.tables.facts_reading import NO_SETTING, FactsReader, Setting
from mtsd.apply.tables.foreign_keys_concerned import keyed_columns
from mtsd.apply.tables.generated_keys import needs_version
from mtsd.apply.tables.misread_columns import misread_columns
from mtsd.apply.tables.misread_tables import misread, reasons_for, why_denied, why_misread
from mtsd.apply.tables.statement_words import loose_words, loosely
from mtsd.apply.tables.table_engines import TableEngines
from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.binlog.events.table_map import TableMap, database_of, parse_table_map
from mtsd.binlog.sql.long_text import LONGEST_READ
from mtsd.model.errors import ServerError
from mtsd.model.group import Group
from mtsd.model.names import folded
from mtsd.model.outcome.reason import Reason, Refused
from mtsd.model.server import ServerVersion, flavour_of, version_of
from mtsd.model.step import Statement
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS

log = structlog.get_logger(__name__)

_MANY: Final = 8192
_OF_MANY_TABLES: Final = frozenset({"DATABASE", "SCHEMA"})
"""Words of definitions that may change tables which they do not name."""
_EVENTS_OF_A_TABLE: Final = 4
"""How many Table_map events of one table are remembered: workers that are behind meet old ones."""
_NO_TABLES: Final = frozenset[str]()
_REFERENCES: Final = "REFERENCES"
_SHARED_S: Final = 1.0
"""How long a reading counts for another Table_map event of the table."""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """What a table of a Table_map event is.

    `without_transactions`: it cannot roll back. `computed`: the target computes something from its
    rows. `needs_version`: of BINLOG, see `mtsd.apply.tables.generated_keys`. `refused` or
    `denied`: its rows may not be applied by BINLOG. `keyed` as in `keyed_columns`. `reached` are
    the tables that its cascades lead to, by their names, `loosely`, whatever their database.
    `definitions` tell what it is, and these are, from others.
    """

    without_transactions: bool = False
    computed: bool = False
    needs_version: bool = False
    refused: Refused | None = None
    denied: ServerError | None = None
    keyed: tuple[int, ...] = ()
    reached: frozenset[str] = _NO_TABLES
    definitions: tuple[bytes, ...] = ()

    @property
    def error(self) -> ServerError | None:
        """Return a new error that says why BINLOG may not apply its rows; None: it may."""
        if self.denied is not None:
            return ServerError(self.denied.number, self.denied.sqlstate, self.denied.text)
        return None if self.refused is None else misread(self.refused)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the target has said of a table: no facts if it lacks it, or hides it."""

    at: float
    facts: TableFacts | None
    denied: ServerError | None


class KnownTables:
    """Those that the daemon has found on a target.

    `by_binlog`: rows are applied by BINLOG, which does not refuse what it would read wrongly.
    `most`: how many it remembers, approximately; `clock` is in seconds.
    """

    __slots__ = (
        "_by_binlog", "_clock", "_events", "_format", "_keyed", "_known", "_most", "_others",
        "_plain", "_reader", "_readings", "_reasons", "_safe", "_server", "_source", "_told",
        "engines", "forgotten", "layouts",
    )  # fmt: skip

    def __init__(
        self,
        server: ServerVersion,
        *,
        by_binlog: bool = True,
        most: int = _MANY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._by_binlog = by_binlog
        self._most = most
        self._clock = clock
        self._known: dict[bytes, KnownTable] = {}
        self._events: dict[Name, dict[bytes, None]] = {}
        """Those of each table, the oldest first."""
        self._safe: set[bytes] = set()
        self._plain: set[bytes] = set()
        self._keyed: dict[bytes, tuple[int, ...]] = {}
        self._others: set[bytes] = set()
        """Those that were not what was known of them."""
        self._reader = FactsReader(server.flavour)
        self._readings: dict[Name, _Reading] = {}
        """Those of a moment ago."""
        self.engines: Final = TableEngines()
        self.forgotten = 0
        """How often something was forgotten."""
        self._told: dict[Name, tuple[str, ...]] = {}
        """What has been said of tables, so that it is said once."""
        self._format = b""
        self._source = server
        self._reasons: Sequence[Reason] = ()
        """Why BINLOG may read rows of the source wrongly."""
        self.layouts: dict[bytes, TableLayout] = {}
        """How rows are written as SQL, by Table_map event; forgotten with the tables."""

    def are_safe(self, table_maps: Collection[bytes]) -> bool:
        """Return whether all these tables are known, can roll back, and need nothing before."""
        return self._safe.issuperset(table_maps)

    def are_plain(self, table_maps: Collection[bytes]) -> bool:
        """Return whether nothing is computed from rows of these tables, as far as is known."""
        return self._plain.issuperset(table_maps)

    @property
    def keyed(self) -> Mapping[bytes, tuple[int, ...]]:
        """The `keyed_columns`, by Table_map event, of the tables that have any."""
        return self._keyed

    def of(self, table_maps: Iterable[bytes]) -> dict[bytes, KnownTable]:
        """Return what is known of those of the tables that are."""
        known = self._known
        return {event: known[event] for event in table_maps if event in known}

    def describe(self, format_description: bytes) -> None:
        """Go by the version of the source in its format description."""
        if format_description == self._format:
            return
        # The first time nothing has been judged by another one, but for what is judged by none.
        is_other = bool(self._format)
        self._format = format_description
        text = parse_format_description(format_description).server_version
        self._source = ServerVersion(flavour_of(text), version_of(text) or (0, 0, 0))
        self._reasons = reasons_for(self._source, self._server) if self._by_binlog else ()
        if is_other or self._reasons:
            self.clear()

    async def learn(
        self, connection: Connection, table_maps: Collection[bytes], state: Setting = NO_SETTING
    ) -> None:
        """Find out about those of the tables that are not known.

        The session of the connection is to have its pinned state, and nothing in flight; `state` is
        as for `read_facts`. Raises ServerError, ConnectionLostError.
        """
        if len(self._known) > self._most or len(self._events) > self._most:
            self.clear()
        # Another session may forget some meanwhile.
        while unknown := [event for event in table_maps if event not in self._known]:
            forgotten = self.forgotten
            mariadb = SERVERS[self._source.flavour].has_history
            tables = {event: parse_table_map(event, mariadb=mariadb) for event in unknown}
            names = {(each.database, each.table) for each in tables.values()}
            readings = await self._read(connection, names, state)
            transactional = await self.engines.transactional(connection)
            if forgotten != self.forgotten:
                # What has been read may be older than what was forgotten.
                continue
            self._readings |= readings
            for event, table in tables.items():
                judged = self._judged(table, readings[table.database, table.table], transactional)
                self._note(event, (table.database, table.table), judged)
            self._forget_older(names, table_maps)

    async def are_others(
        self, connection: Connection, table_maps: Collection[bytes], state: Setting
    ) -> bool:
        """Look at these tables anew, as `learn` does; return whether one is another than before.

        That is remembered for whoever has failed by the same table and comes later.
        """
        before = self.of(table_maps)
        self.forget_these(table_maps)
        await self.learn(connection, table_maps, state)
        for event, now in self.of(table_maps).items():
            if event in before and now.definitions != before[event].definitions:
                self._others.add(event)
        return not self._others.isdisjoint(table_maps)

    def forget(self, definition: Group, merged: Collection[str]) -> None:
        """Find out anew about what a definition may have changed without another Table_map event.

        That are tables from which cascades lead to those that it names, and those of `merged`
        databases, which are several on the source.
        """
        self.forgotten += 1
        source, server = self._source.flavour, self._server.flavour
        if source is not server and TARGETS[server].cascades_compute:
            # Table maps of a MariaDB need not change with a foreign key that refers to the table,
            # and only what a MySQL computes counts further than the table.
            self.clear()
            return
        # What it defines is read anew in any case, with another Table_map event.
        self._readings.clear()
        defined = _defined(definition)
        if defined is None or _REFERENCES in defined:
            # But not a table that a new foreign key refers to, which may cascade: MariaDB.
            self.layouts.clear()
        several = frozenset(map(folded, merged))
        left = [
            event
            for event, known in self._known.items()
            if (known.reached and (defined is None or not defined.isdisjoint(known.reached)))
            or (several and folded(database_of(event)) in several)
        ]
        for event in left:
            self._forget(event)

    def forget_these(self, table_maps: Iterable[bytes]) -> None:
        """Find out anew about these tables, on which something is not as it has to be."""
        self.forgotten += 1
        for event in table_maps:
            table = parse_table_map(event)
            self._readings.pop((table.database, table.table), None)
            self._forget(event)

    def clear(self) -> None:
        """Forget all tables."""
        self.forgotten += 1
        self._known.clear()
        self._events.clear()
        self._safe.clear()
        self._plain.clear()
        self._keyed.clear()
        self._others.clear()
        self._readings.clear()
        self.layouts.clear()

    def _forget(self, event: bytes) -> None:
        self._known.pop(event, None)
        self._safe.discard(event)
        self._plain.discard(event)
        self._keyed.pop(event, None)
        self.layouts.pop(event, None)

    def _forget_older(self, names: Iterable[Name], asked_for: Collection[bytes]) -> None:
        """Forget older events of these tables: one that is altered often has another each time."""
        for name in names:
            events = self._events[name]
            older = [event for event in events if event not in asked_for]
            for event in older[: max(0, len(events) - _EVENTS_OF_A_TABLE)]:
                del events[event]
                self._forget(event)

    def _note(self, event: bytes, name: Name, table: KnownTable) -> None:
        self._known[event] = table
        events = self._events.setdefault(name, {})
        events.pop(event, None)
        events[event] = None
        if not table.computed:
            self._plain.add(event)
        if table.keyed:
            self._keyed[event] = table.keyed
        special = table.without_transactions or table.needs_version
        if not (special or table.refused or table.denied):
            self._safe.add(event)

    async def _read(
        self, connection: Connection, names: Collection[Name], state: Setting
    ) -> dict[Name, _Reading]:
        """Return what the target says of these tables, or has said a moment ago."""
        now = self._clock()
        self._readings = {
            name: reading
            for name, reading in self._readings.items()
            if now - reading.at < _SHARED_S
        }
        known = {name: self._readings[name] for name in names if name in self._readings}
        left = set(names).difference(known)
        if not left:
            return known
        facts = await self._reader.read(connection, left, state)
        for name in left:
            denied = None
            if self._by_binlog and TARGETS[self._server.flavour].guards_each_table:
                denied = await why_denied(connection, name)
            known[name] = _Reading(now, facts.get(name), denied)
        return known

    def _judged(
        self, table: TableMap, reading: _Reading, transactional: Collection[str]
    ) -> KnownTable:
        facts = reading.facts
        if facts is None:
            return KnownTable(denied=reading.denied)
        if self._by_binlog:
            self._tell(facts, table)
        return KnownTable(
            without_transactions=bool(facts.engine) and facts.engine not in transactional,
            computed=is_computed(facts, len(table.column_types), self._server.flavour),
            needs_version=self._by_binlog and needs_version(facts, table, self._server),
            refused=why_misread(facts, self._reasons),
            denied=reading.denied,
            keyed=keyed_columns(facts, len(table.column_types)),
            reached=frozenset(loosely(each.name[1]) for each in facts.reached) or _NO_TABLES,
            definitions=tuple(each.definition for each in (facts, *facts.reached)),
        )

    def _tell(self, facts: TableFacts, table: TableMap) -> None:
        """Log what the target reads otherwise than the source: nothing else ever says so."""
        found = misread_columns(facts, table)
        if found == self._told.get(facts.name, ()):
            return
        self._told[facts.name] = found
        if found:
            log.warning(
                "rows of a table become others on the target",
                table=str(facts), because="; ".join(found),
                remedy="give it the source's columns (ALTER TABLE on the target), and load again"
                " what was applied meanwhile; mtsd check lists all such tables",
            )  # fmt: skip


def _defined(definition: Group) -> frozenset[str] | None:
    """Return the words of a definition, among them the tables that it changes; None: any table."""
    words: set[str] = set()
    for step in definition.steps:
        if isinstance(step, Statement):
            if len(step.query.statement) > LONGEST_READ:
                return None
            words |= loose_words(step.query.text)
    return frozenset(words) if words and words.isdisjoint(_OF_MANY_TABLES) else None
