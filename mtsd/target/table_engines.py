"""Which tables of the target cannot roll back: what their storage engine is there, not here.

A source tells by the end of a group that a table without transactions was touched, as far as its
own tables go. What may be half applied is decided by the target's engines, which can be others.
"""

from collections.abc import Collection

from mtsd.binlog.table_map import parse_table_map
from mtsd.target import literals
from mtsd.wire.connection import Connection

_MANY = 8192
_SOME = 5


class TableEngines:
    """What one session has learned of the tables that row events name.

    It is kept by Table_map event: a source gives every definition a table id of its own, so a
    table that was altered by what is replicated comes with another one.
    """

    __slots__ = ("_connection", "_engines", "_safe", "_without")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._safe: set[bytes] = set()
        self._without: dict[bytes, str] = {}
        self._engines: frozenset[str] | None = None

    def are_safe(self, table_maps: Collection[bytes]) -> bool:
        """Tell whether all these tables are known to have transactions."""
        return self._safe.issuperset(table_maps)

    async def without_transactions(self, table_maps: Collection[bytes]) -> tuple[str, ...]:
        """Return those of the tables that cannot roll back, as "database.table", sorted.

        A table that the target lacks, or does not show to the user, is none of them. Nothing may
        be on its way on the session. Raises ServerError, ConnectionLostError.
        """
        unknown = [
            event for event in table_maps if event not in self._safe and event not in self._without
        ]
        if unknown:
            await self._learn(unknown)
        return tuple(sorted({self._without[e] for e in table_maps if e in self._without}))

    async def without_transactions_in(self, databases: Collection[str]) -> tuple[str, ...]:
        """Return some tables of the databases that cannot roll back; empty where all can.

        Raises ServerError, ConnectionLostError.
        """
        rows = await self._connection.query(
            b"SELECT table_schema,table_name FROM information_schema.tables WHERE table_schema IN"
            b" (%b) AND engine IS NOT NULL AND LOWER(engine) NOT IN (%b) LIMIT %d"
            % (
                b",".join(_utf8(name) for name in databases),
                b",".join(_utf8(name) for name in await self._transactional()),
                _SOME,
            )
        )
        return tuple(f"{schema!s}.{name!s}" for schema, name in rows)

    async def _learn(self, table_maps: Collection[bytes]) -> None:
        if len(self._safe) + len(self._without) > _MANY:
            self._safe.clear()
            self._without.clear()
        names = {}
        for event in table_maps:
            described = parse_table_map(event)
            names[event] = described.database, described.table
        without = {
            (database.lower(), table.lower())
            for database, table, engine in await self._found(set(names.values()))
            if engine.lower() not in await self._transactional()
        }
        for event, (database, table) in names.items():
            # Names of tables may differ in case between servers; two that do on one are rare, and
            # take each other's engine on the safe side.
            if (database.lower(), table.lower()) in without:
                self._without[event] = f"{database}.{table}"
            else:
                self._safe.add(event)

    async def _found(self, names: Collection[tuple[str, str]]) -> list[tuple[str, str, str]]:
        listed = b",".join(
            b"(%b,%b)" % (_utf8(database), _utf8(table)) for database, table in sorted(names)
        )
        rows = await self._connection.query(
            b"SELECT table_schema,table_name,engine FROM information_schema.tables"
            b" WHERE engine IS NOT NULL AND (table_schema,table_name) IN (%b)" % listed
        )
        return [(str(schema), str(name), str(engine)) for schema, name, engine in rows]

    async def _transactional(self) -> frozenset[str]:
        if self._engines is None:
            rows = await self._connection.query(
                b"SELECT engine FROM information_schema.engines WHERE transactions='YES'"
            )
            self._engines = frozenset(str(engine).lower() for (engine,) in rows)
        return self._engines


def _utf8(name: str) -> bytes:
    """Return a literal that compares with names as names do, not as bytes."""
    return b"_utf8mb4 " + literals.text(name)
