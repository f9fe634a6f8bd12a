"""Random streams of XA transactions as a source would log them, and what has to come of them."""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.model.group_keys import GroupKeys
from mtsd.model.position import Position
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent, Rows, Statement, StatementKind
from mtsd.model.xa_xid import XaXid
from tests.schedule.worlds.streams import DELETES, Shape, group_of

PREPARE: Final = GroupKind.XA_PREPARE
COMPLETE: Final = GroupKind.XA_COMPLETE
TABLES: Final = tuple((database, f"{database}.{name}") for database in "abc" for name in "tu")
ROWS: Final = range(4)
"""Of each table."""
_QUERY: Final = QueryEvent(1, 0, 0, StatementText(b""), None, "", (), False, None, None, 0)
COMMITS: Final = Statement(_QUERY, StatementKind.XA_COMMIT, 0)
ROLLS_BACK: Final = Statement(_QUERY, StatementKind.XA_ROLLBACK, 0)
_CHANGES: Final = Statement(_QUERY, StatementKind.DML, 0)
XIDS: Final = tuple(XaXid(1, b"%d" % number, b"") for number in range(3))
"""So few that they are used again and again."""

Row = tuple[str, int]
"""A table, and the number of one of its rows."""


class Clock(enum.Enum):
    """What the source logs of its commits."""

    COMMIT_ORDER = "MySQL, by the order of commits"
    WRITESET = "MySQL, by writesets"
    COMMIT_ID = "MariaDB, by group commits"


@dataclass(frozen=True, slots=True)
class Effect:
    """What a group does: it writes its number to rows, or commits what was prepared, or not."""

    writes: frozenset[Row] = frozenset()
    commits: bool = True


@dataclass(slots=True)
class XaTarget:
    """A server without any patience: what would have to wait, or fails, is an assertion."""

    history: dict[Row, list[int]] = field(default_factory=dict)
    """Which groups have written a row, in the order of their commits."""
    prepared: dict[XaXid, tuple[int, frozenset[Row]]] = field(default_factory=dict)

    def apply(self, group: Group, effect: Effect) -> None:
        """Apply a group at once."""
        xid = group.xid
        if group.kind is COMPLETE:
            assert xid in self.prepared, f"XAER_NOTA for group {group.number}"
            number, writes = self.prepared.pop(xid)
            if effect.commits:
                self._write(number, writes)
            return
        for _, locked in self.prepared.values():
            assert effect.writes.isdisjoint(locked), f"group {group.number} waits for a lock"
        if xid is None:
            self._write(group.number, effect.writes)
        else:
            assert xid not in self.prepared, f"XAER_DUPID for group {group.number}"
            self.prepared[xid] = group.number, effect.writes

    def _write(self, number: int, rows: frozenset[Row]) -> None:
        for row in rows:
            self.history.setdefault(row, []).append(number)


@dataclass(slots=True)
class _Transaction:
    """One that has its locks, and is not logged yet."""

    shape: Shape
    effect: Effect
    xid: XaXid | None
    began: int
    """How many groups were logged when it had all its locks."""
    keys: frozenset[int]


def _steps(each: _Transaction) -> tuple[Rows | Statement, ...]:
    if each.shape.kind is COMPLETE:
        return (COMMITS if each.effect.commits else ROLLS_BACK,)
    return (DELETES,) if each.shape.tables else (_CHANGES,)


class XaSource:
    """A source that several sessions write to; nothing waits there for a lock either."""

    def __init__(self, seed: int, clock: Clock) -> None:
        self._chance = Random(f"{seed} {clock.name}")
        self._clock = clock
        self.groups: list[Group] = []
        self.effects: list[Effect] = []
        self._prepared: dict[XaXid, frozenset[Row]] = {}
        self._busy: set[XaXid] = set()
        """Xids that an open transaction prepares or completes."""
        self._open: list[_Transaction] = []
        self._file = 1
        self._first = 0
        """How many groups were logged before this file."""
        self._commit_id = 0
        self._written: dict[int, int] = {}
        self._history = 0
        """Where the source's knowledge of who has written what begins."""

    def run(self, length: int) -> None:
        """Log at least so many groups."""
        while len(self.groups) < length:
            if len(self._open) < 5 and self._chance.random() < 0.6:
                self._begin()
            elif self._open:
                self._log(self._chance.choice((1, 1, 2, 3)))
            if self._chance.random() < 0.02:
                self._file += 1
                self._first = len(self.groups)
                self._written.clear()
                self._history = self._first

    def _begin(self) -> None:
        chance = self._chance.random()
        completed = sorted(self._prepared.keys() - self._busy)
        free = [xid for xid in XIDS if xid not in self._prepared and xid not in self._busy]
        if chance < 0.35 and completed:
            effect = Effect(commits=self._chance.random() < 0.6)
            self._add(Shape((), kind=COMPLETE), effect, self._chance.choice(completed))
        elif chance < 0.75 and free:
            self._write(PREPARE, self._chance.choice(free))
        elif chance < 0.95:
            self._write(self._chance.choice((GroupKind.ROWS, GroupKind.STATEMENTS)), None)
        else:
            database, table = self._chance.choice(TABLES)
            rows = frozenset((table, row) for row in ROWS)
            if self._locked().isdisjoint(rows):
                self._add(Shape((database,), kind=GroupKind.DDL), Effect(rows), None)

    def _write(self, kind: GroupKind, xid: XaXid | None) -> None:
        chosen = self._chance.sample(TABLES, self._chance.choice((1, 1, 2)))
        rows = [(table, self._chance.choice(ROWS)) for _, table in chosen]
        if self._locked().isdisjoint(rows):
            says = kind is not GroupKind.STATEMENTS and self._chance.random() < 0.8
            tables = tuple(table for _, table in chosen) if says else ()
            databases = tuple(sorted({database for database, _ in chosen}))
            alone = self._chance.random() < 0.05
            self._add(
                Shape(databases, kind=kind, tables=tables, alone=alone),
                Effect(frozenset(rows)),
                xid,
            )

    def _add(self, shape: Shape, effect: Effect, xid: XaXid | None) -> None:
        if xid is not None:
            self._busy.add(xid)
        keys = frozenset(map(hash, effect.writes))
        self._open.append(_Transaction(shape, effect, xid, len(self.groups), keys))

    def _locked(self) -> set[Row]:
        return set[Row]().union(
            *self._prepared.values(), *(each.effect.writes for each in self._open)
        )

    def _log(self, count: int) -> None:
        self._commit_id += 1
        self._chance.shuffle(self._open)
        together, self._open = self._open[:count], self._open[count:]
        for each in together:
            number = len(self.groups) + 1
            time = (0, 0) if self._clock is Clock.COMMIT_ID else self._time(each, number)
            made = group_of(each.shape, number, Position(f"binlog.{self._file:06}", number * 100))
            by_id = self._clock is Clock.COMMIT_ID and len(together) > 1
            databases = tuple(map(hash, each.shape.databases))
            keys = GroupKeys(wholes=databases)
            if each.shape.tables:
                parts = (*databases, *map(hash, each.shape.tables))
                keys = GroupKeys(tuple(each.keys), parts=parts)
            self.groups.append(
                replace(
                    made,
                    steps=_steps(each),
                    xid=each.xid,
                    last_committed=time[0],
                    sequence_number=time[1],
                    commit_id=self._commit_id if by_id else 0,
                    keys=keys,
                )
            )
            self.effects.append(each.effect)
            if each.xid is not None:
                self._busy.remove(each.xid)
                if each.shape.kind is PREPARE:
                    self._prepared[each.xid] = each.effect.writes
                else:
                    del self._prepared[each.xid]

    def _time(self, each: _Transaction, number: int) -> tuple[int, int]:
        """Return last_committed and sequence_number; what has no writeset clears the history."""
        parent = each.began
        if self._clock is Clock.WRITESET:
            if each.shape.tables:
                known = [self._written.get(key, self._history) for key in each.keys]
                parent = min(parent, max(known))
                self._written |= dict.fromkeys(each.keys, number)
            else:
                self._written.clear()
                self._history = number
        return max(parent - self._first, 0), number - self._first


def outcome(groups: Sequence[Group], effects: Sequence[Effect]) -> XaTarget:
    """Return what a server has that applies groups one after another."""
    target = XaTarget()
    for group, effect in zip(groups, effects, strict=True):
        target.apply(group, effect)
    return target


def xa_sources(seeds: range, length: int) -> Iterator[XaSource]:
    """Yield a source of each kind for each seed."""
    for seed in seeds:
        for clock in Clock:
            source = XaSource(seed, clock)
            source.run(length)
            yield source
