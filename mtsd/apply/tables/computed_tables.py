"""Tables of the target from whose rows it computes something that may depend on the session.

A generated column, a CHECK constraint and a functional key are expressions over the columns of a
row, and the server evaluates them under the session's sql_mode, time_zone and lc_time_names
(measured with MySQL 9.7: a DATETIME generated from a TIMESTAMP, the name of a month, a difference
of unsigned numbers). So is the one that partitions a table.

What changes the rows of another table, by a foreign key's cascade, changes its keys on such columns
under the same state: a key that is computed otherwise than when the row was written keeps the
former entry.

The default of a column that only the target has may be such an expression, too.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from mtsd.apply.session.family import TARGETS
from mtsd.apply.sql import literals
from mtsd.apply.tables.independent_expressions import is_independent
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.names import folded
from mtsd.model.server import Flavour, ServerVersion
from mtsd.wire.connection import Connection
from mtsd.wire.understood import understood

_FUNCTIONAL_KEYS: Final = (8, 0, 13)
"""The first version with them."""
_CHECKS: Final = (8, 0, 16)
_CASCADES: Final = (
    b"SELECT DISTINCT unique_constraint_schema,referenced_table_name,constraint_schema,table_name"
    b" FROM information_schema.referential_constraints"
    b" WHERE unique_constraint_catalog='def'"
    b" AND (unique_constraint_schema,referenced_table_name) IN (?)"
    b" AND (update_rule NOT IN ('NO ACTION','RESTRICT')"
    b" OR delete_rule NOT IN ('NO ACTION','RESTRICT'))"
)
"""With the catalog, MySQL finds them by an index; otherwise it reads all foreign keys."""
_TYPES: Final = (
    b"SELECT table_schema,table_name,column_name,data_type FROM information_schema.columns"
    b" WHERE (table_schema,table_name) IN (?)"
)

Name = tuple[str, str]
"""Database and table."""


class ComputedTables:
    """Those that one session has found on a target."""

    __slots__ = ("_cascades", "_connection", "_defaults", "_expressions", "_known", "_parents")

    def __init__(
        self, connection: Connection, target: ServerVersion, known: KnownTables | None = None
    ) -> None:
        self._connection = connection
        self._expressions = _expressions(target)
        self._defaults = _defaults(target)
        # Where keys cannot depend on the session, a cascade computes nothing that does.
        self._cascades = TARGETS[target.flavour].cascades_compute
        self._known = known or KnownTables()
        self._parents: set[bytes] = set()
        """Those from which a cascade reaches others."""

    def are_plain(self, table_maps: Collection[bytes]) -> bool:
        """Return whether nothing is computed from rows of these tables, as far as is known."""
        return self._known.are_plain(table_maps)

    def are_known(self, table_maps: Collection[bytes]) -> bool:
        """Return whether `learn` has found these tables."""
        return self._known.are_known(table_maps)

    @property
    def parents(self) -> Collection[bytes]:
        """Those known from which a cascade reaches others, whose definitions count."""
        return self._parents

    def forget(self, databases: Collection[str]) -> None:
        """Forget the tables of these databases, and the `parents`."""
        self._known.forget_in(databases)
        self._known.forget(self._parents)
        self._parents.clear()

    def forget_all(self) -> None:
        """Forget all tables."""
        self._known.clear()
        self._parents.clear()

    async def learn(self, table_maps: Collection[bytes]) -> None:
        """Find out about tables. Nothing may be in flight on the session.

        Raises ServerError, ConnectionLostError.
        """
        if self.are_known(table_maps):
            return
        if self._known.make_room():
            self._parents.clear()
        tables = {event: parse_table_map(event) for event in self._known.unknown(table_maps)}
        names = {(each.database, each.table) for each in tables.values()}
        parents = await self._reached(names) if self._cascades else {}
        computed = await self._computed(names.union(*parents.values()))
        for parent, reached in parents.items():
            if any(_folded(each) in computed for each in reached):
                computed.add(parent)
        widths = await self._widths(names)
        for event, table in tables.items():
            name = _folded((table.database, table.table))
            fills = widths.get(name, 0) > len(table.column_types)
            self._known.note(event, "computed" if fills or name in computed else "")
            if name in parents:
                self._parents.add(event)

    @understood("target")
    async def _widths(self, names: Collection[Name]) -> dict[Name, int]:
        """Return how many columns tables have with such a default, by their name, folded."""
        found: dict[Name, int] = {}
        for schema, table, columns in await self._ask(self._defaults, names):
            name = _folded((str(schema), str(table)))
            found[name] = max(found.get(name, 0), literals.number(columns))
        return found

    @understood("target")
    async def _reached(self, names: Collection[Name]) -> dict[Name, set[Name]]:
        """Return which tables the cascades of tables reach, by the name of these, folded."""
        children: defaultdict[Name, set[Name]] = defaultdict(set)
        asked: set[Name] = set()
        left = set(names)
        while left:
            asked |= left
            for schema, table, child_schema, child in await self._ask(_CASCADES, left):
                children[_folded((str(schema), str(table)))].add((str(child_schema), str(child)))
            left = set().union(*children.values()) - asked
        found: dict[Name, set[Name]] = {}
        for parent in map(_folded, names):
            reached: set[Name] = set()
            beyond = children.get(parent, set())
            while beyond:
                reached |= beyond
                beyond = set().union(*(children.get(_folded(each), set()) for each in beyond))
                beyond -= reached
            if reached:
                found[parent] = reached
        return found

    @understood("target")
    async def _computed(self, names: Collection[Name]) -> set[Name]:
        """Return which tables have an expression that may depend on the session, folded."""
        expressions: defaultdict[Name, list[str]] = defaultdict(list)
        for schema, table, text in await self._ask(self._expressions, names):
            expressions[str(schema), str(table)].append(str(text))
        if not expressions:
            return set()
        types: defaultdict[Name, dict[str, str]] = defaultdict(dict)
        for schema, table, column, kind in await self._ask(_TYPES, expressions):
            types[str(schema), str(table)][str(column)] = str(kind)
        return {
            _folded((schema, table))
            for (schema, table), texts in expressions.items()
            if not all(is_independent(text, types[schema, table]) for text in texts)
        }

    async def _ask(self, query: bytes, names: Collection[Name]) -> Sequence[tuple[object, ...]]:
        return await self._connection.query(query.replace(b"?", literals.tables(names)))


def _folded(name: Name) -> Name:
    database, table = name
    return folded(database), folded(table)


def _defaults(target: ServerVersion) -> bytes:
    """Return the query for how many columns those of the tables (?) have with such a default.

    CURRENT_TIMESTAMP is the same moment in every session.
    """
    computed = "LOCATE('(',column_default)"
    if target.flavour is Flavour.MYSQL:
        computed = (
            "(extra LIKE '%DEFAULT_GENERATED%'"
            " OR data_type='datetime' AND column_default LIKE 'CURRENT_TIMESTAMP%')"
        )
    return (
        "SELECT table_schema,table_name,COUNT(*) FROM information_schema.columns"
        " WHERE (table_schema,table_name) IN (?) GROUP BY table_schema,table_name"
        f" HAVING SUM({computed} AND NOT (data_type='timestamp'"
        " AND UPPER(column_default) LIKE 'CURRENT_TIMESTAMP%'))>0"
    ).encode()


def _expressions(target: ServerVersion) -> bytes:
    """Return the query for all expressions of the tables (?), each with schema and table."""
    is_mysql = target.flavour is Flavour.MYSQL
    of_columns = (
        "SELECT table_schema,table_name,generation_expression FROM information_schema.columns"
        " WHERE generation_expression<>'' AND (table_schema,table_name) IN (?)"
    )
    parts = [of_columns]
    if not is_mysql:
        parts.append(
            "SELECT constraint_schema,table_name,check_clause"
            " FROM information_schema.check_constraints"
            " WHERE (constraint_schema,table_name) IN (?)"
        )
    elif target.number >= _CHECKS:
        parts.append(
            "SELECT table_schema,table_name,check_clause FROM information_schema.table_constraints"
            " JOIN information_schema.check_constraints USING (constraint_schema,constraint_name)"
            " WHERE constraint_type='CHECK' AND (table_schema,table_name) IN (?)"
        )
    if is_mysql:
        # Only a difference may depend on the session, among what MySQL accepts to partition by.
        parts += (
            f"SELECT DISTINCT table_schema,table_name,{each} FROM information_schema.partitions"
            f" WHERE INSTR({each},'-') AND (table_schema,table_name) IN (?)"
            for each in ("partition_expression", "subpartition_expression")
        )
    if is_mysql and target.number >= _FUNCTIONAL_KEYS:
        parts.append(
            "SELECT table_schema,table_name,expression FROM information_schema.statistics"
            " WHERE expression IS NOT NULL AND (table_schema,table_name) IN (?)"
        )
    return " UNION ALL ".join(parts).encode()
