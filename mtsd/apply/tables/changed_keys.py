"""What groups change, as keys of rows, tables and databases of the target.

The keys that count are the target's, read when mtsd starts, and again after each definition in the
stream: until then its databases, with those that foreign keys join to them, count as a whole. So
do databases that are bound together, and everything that is not only rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mtsd.apply.tables.key_definitions import ForeignKey, KeyDefinitions, TableName, UniqueKeys
from mtsd.apply.tables.table_keys import BY_THEMSELVES, ByRow, families_of, keys_of
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.table_map import TableMap, parse_table_map
from mtsd.binlog.sql.long_text import LONGEST_READ
from mtsd.binlog.sql.qualifiers import qualifiers
from mtsd.binlog.values.row_keys import KeyReader, table_id_of
from mtsd.model.group import Group, GroupKind, with_keys
from mtsd.model.group_keys import GroupKeys
from mtsd.model.names import folded
from mtsd.model.step import Rows, Statement

_TABLE_MAP: Final[int] = EventType.TABLE_MAP_EVENT.value
_DEFINITIONS: Final = frozenset({GroupKind.DDL, GroupKind.CREATE_SELECT})
_COMPLETE: Final = GroupKind.XA_COMPLETE
_MAX_TABLES: Final = 4096
_MAX_KEYS: Final = 16_384
"""A group with more of them counts for the whole of its tables."""


@dataclass(frozen=True, slots=True, eq=False)
class _Changed:
    """What changes of a table mean: by row, if there is a `reader`, else as a whole."""

    table_id: int
    database: str
    reader: KeyReader | None
    parts: tuple[int, ...]
    wholes: tuple[int, ...]
    whole_parts: tuple[int, ...]
    """What a change of the whole table changes and uses besides."""
    alone: bool = False
    is_known: bool = False
    """The keys of its database are known."""
    referred: bool = False
    """The source says that foreign keys refer to it, perhaps from other databases."""


class ChangedKeys:
    """Fills in `Group.keys`; `as_sql` is as for `keys_of`, `bind` as for a policy by names.

    `fold_case`: names of databases and tables are in lower case on the target. `mariadb`: the
    source is one.
    """

    def __init__(
        self,
        known: KeyDefinitions,
        *,
        fold_case: bool = False,
        as_sql: bool = False,
        bind: Sequence[Sequence[str]] = (),
        mariadb: bool = False,
    ) -> None:
        self._mariadb = mariadb
        self._fold_case = fold_case
        self._as_sql = as_sql
        self._bind = [frozenset(map(self._folded, together)) for together in bind]
        self._databases = set(known.databases)
        self._tables: dict[TableName, UniqueKeys] = dict(known.tables)
        self._foreign_keys = list(known.foreign_keys)
        self._redefined: dict[str, int] = {}
        """By database whose keys are not known: the newest group that defines something in it."""
        self._together: list[frozenset[str]] = []
        """Databases that a definition may have joined, as long as the keys of one are not known."""
        self._relearned: set[str] = set()
        """Databases whose keys may be others than those of the last group that changed them."""
        self._changed: dict[bytes, _Changed] = {}
        """By Table_map event: all groups of a file have the same one of a table (see `Grouper`)."""
        self._join()

    def __call__(self, group: Group) -> Group:
        """Return a group with its keys. Raises BinlogError if an event is damaged."""
        if group.kind in _DEFINITIONS:
            return self._definition(group)
        if group.kind is _COMPLETE:
            # It comes here only if nothing but the databases of its prepare is known.
            return self._of_databases(group)
        changed = self._changed
        by_id: dict[int, _Changed] = {}
        of: _Changed | None = None
        rows: list[int] = []
        references: list[int] = []
        as_whole: list[_Changed] = []
        alone = False
        for step in group.steps:
            if type(step) is not Rows:
                return self._of_databases(group)
            for event in step.events:
                if event[4] == _TABLE_MAP:
                    table = changed.get(event)
                    if table is None:
                        table = self._changed_by(event)
                    if table is of:
                        continue
                    of = by_id[table.table_id] = table
                    alone = alone or table.alone
                    if table.reader is None:
                        as_whole.append(table)
                    continue
                table_id = table_id_of(event)
                if of is None or of.table_id != table_id:
                    of = by_id.get(table_id)
                    if of is None:
                        return self._of_databases(group)
                reader = of.reader
                if reader is None or (as_whole and of in as_whole):
                    continue
                if not reader.collect(event, rows, references, _MAX_KEYS):
                    as_whole.append(of)
        if (
            len(by_id) == 1
            and of is not None
            and not (alone or group.alone or as_whole or self._relearned)
        ):
            return with_keys(group, GroupKeys(tuple(rows), tuple(references), (), of.parts))
        tables = list(by_id.values())
        if not tables:
            return self._of_databases(group)
        if alone:
            group = replace(group, alone=True)
        elif (
            group.alone
            and all(each.is_known for each in tables)
            and (any(each.referred for each in tables))
        ):
            # The source does not say who refers to it; here that is known.
            group = replace(group, alone=False)
        wholes = [key for each in as_whole for key in each.wholes]
        parts = [key for each in as_whole for key in each.whole_parts]
        parts += [key for each in tables for key in each.parts]
        wholes += self._first_of({each.database for each in tables})
        return with_keys(
            group,
            GroupKeys(
                tuple(rows),
                tuple(references),
                tuple(dict.fromkeys(wholes)),
                tuple(dict.fromkeys(parts)),
            ),
        )

    def redefined(self, databases: Iterable[str]) -> int:
        """Return the newest group that has made keys of databases unknown; 0: they are known."""
        redefined = self._redefined
        if not redefined:
            return 0
        return max((redefined.get(self._folded(name), 0) for name in databases), default=0)

    @property
    def knows_all(self) -> bool:
        """Whether no definition has made keys unknown that have not been read since."""
        return not self._redefined

    def due(self, is_committed: Callable[[int], bool]) -> Mapping[str, int]:
        """Return the databases whose keys should be read now, with what `learn` needs.

        `is_committed` tells it of a group that has been given its keys.
        """
        return {name: last for name, last in self._redefined.items() if is_committed(last)}

    def learn(self, read: KeyDefinitions, due: Mapping[str, int]) -> None:
        """Go on with what has been read of the databases that were `due` before the reading."""
        learned = {name for name, last in due.items() if self._redefined.get(name) == last}
        if not learned:
            return
        self._databases = (self._databases - learned) | (read.databases & learned)
        self._tables = {
            name: known for name, known in self._tables.items() if name[0] not in learned
        } | {name: known for name, known in read.tables.items() if name[0] in learned}
        self._foreign_keys = [
            each for each in self._foreign_keys if learned.isdisjoint(_databases_of(each))
        ] + [each for each in read.foreign_keys if not learned.isdisjoint(_databases_of(each))]
        for name in learned:
            del self._redefined[name]
        self._together = [
            names for names in self._together if not names.isdisjoint(self._redefined)
        ]
        self._join()
        for name in learned:
            self._relearned |= self._joined(name)

    def _definition(self, group: Group) -> Group:
        """Let a definition change its databases as a whole, and all whose keys it may change."""
        if group.uses_temporary is not None and group.uses_temporary.only:
            return self._of_databases(group)
        named = set(map(self._folded, group.databases))
        if group.alone or not named:
            named |= self._databases
            named |= self._redefined.keys()
        for step in group.steps:
            if isinstance(step, Statement) and len(step.query.statement) > LONGEST_READ:
                named |= self._databases
            elif isinstance(step, Statement) and b"REFERENCES" in step.query.statement.upper():
                databases = qualifiers(step.query.text)
                named |= self._databases.intersection(map(self._folded, databases))
        names = frozenset(named).union(*map(self._joined, named))
        self._together.append(names)
        self._redefined |= dict.fromkeys(names, group.number)
        self._join()
        return with_keys(group, GroupKeys(wholes=tuple(map(_database_key, sorted(names)))))

    def _of_databases(self, group: Group) -> Group:
        names = set[str]().union(*(self._joined(self._folded(name)) for name in group.databases))
        return with_keys(group, GroupKeys(wholes=tuple(map(_database_key, sorted(names)))))

    def _first_of(self, databases: Iterable[str]) -> list[int]:
        """Return what else a group changes as the first one with keys that were read anew.

        It comes after everything before it, which has other keys.
        """
        names = set[str]().union(
            *(self._joined(name) for name in self._relearned.intersection(databases))
        )
        self._relearned -= names
        return list(map(_database_key, sorted(names)))

    def _changed_by(self, event: bytes) -> _Changed:
        table = parse_table_map(event, mariadb=self._mariadb)
        database = self._folded(table.database)
        name = database, self._folded(table.table)
        if len(self._changed) >= _MAX_TABLES:
            self._changed.clear()
        is_known = database in self._databases and database not in self._redefined
        if not is_known or any(database in together for together in self._bind):
            keys = tuple(map(_database_key, sorted(self._joined(database))))
            changed = _Changed(table.table_id, database, None, (), keys, ())
        else:
            changed = self._table(table, name)
        self._changed[event] = changed
        return changed

    def _table(self, table: TableMap, name: TableName) -> _Changed:
        foreign_keys = self._foreign_keys_of.get(name, [])
        known = self._tables.get(name)
        keys = keys_of(table, name, self._tables, foreign_keys, as_sql=self._as_sql)
        family = sorted(self._families.get(name, {name}))
        uses = [name, *(each.parent for each in foreign_keys if each.table == name)]
        return _Changed(
            table.table_id,
            name[0],
            KeyReader(keys.formats, keys.keys) if isinstance(keys, ByRow) else None,
            _keys_within(uses) if isinstance(keys, ByRow) else (),
            tuple(map(_table_key, family)),
            tuple(dict.fromkeys(_database_key(database) for database, _ in family)),
            alone=known is not None and (known.triggers or known.engine not in BY_THEMSELVES),
            is_known=True,
            referred=table.referred_by_foreign_key_of_other_database,
        )

    def _join(self) -> None:
        """Find out again what foreign keys, bound databases and definitions join."""
        self._changed.clear()
        self._families = families_of(self._foreign_keys)
        self._foreign_keys_of: dict[TableName, list[ForeignKey]] = {}
        joined: dict[str, frozenset[str]] = {}
        pairs = {frozenset(_databases_of(each)) for each in self._foreign_keys}
        for names in [*self._bind, *self._together, *pairs]:
            together = names.union(*(joined.get(name, ()) for name in names))
            joined |= dict.fromkeys(together, together)
        self._databases_joined = joined
        for each in self._foreign_keys:
            for name in {each.table, each.parent}:
                self._foreign_keys_of.setdefault(name, []).append(each)

    def _joined(self, database: str) -> frozenset[str]:
        return self._databases_joined.get(database) or frozenset({database})

    def _folded(self, name: str) -> str:
        return folded(name) if self._fold_case else name


def _databases_of(foreign: ForeignKey) -> tuple[str, str]:
    return foreign.table[0], foreign.parent[0]


def _database_key(name: str) -> int:
    return hash(("database", name))


def _table_key(name: TableName) -> int:
    return hash(("table", name))


def _keys_within(names: Iterable[TableName]) -> tuple[int, ...]:
    keys: dict[int, None] = {}
    for name in names:
        keys[_database_key(name[0])] = None
        keys[_table_key(name)] = None
    return tuple(keys)
