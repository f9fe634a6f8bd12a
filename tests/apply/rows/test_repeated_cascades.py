"""Cascades in a repair: what is remembered of foreign keys, and what changes of rows make."""

from collections.abc import Callable
from typing import cast

import pytest

from mtsd.apply.rows.repeated_cascades import Cascade, KnownCascades, cascaded
from mtsd.apply.tables.table_layout import layout_of
from mtsd.apply.tables.table_loading import load_table
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import UPDATES
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.outcome.reason import Refused
from mtsd.wire.connection import Connection
from tests.apply.sessions import open_session
from tests.binlog.row_values import logged
from tests.servers.mysqld import Server


class _Target:
    """`children` in b refer to a.Parent; `during` is called in the middle of an answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.children = ["one"]
        self.during: Callable[[], None] = lambda: None

    async def query(self, sql: bytes) -> list[tuple[object, ...]]:
        if b"referential_constraints" in sql:
            self.asked.append("rules")
            found = [
                ("a", "Parent", "b", child, f"{child}_fk", "CASCADE", "NO ACTION")
                for child in self.children
            ]
            self.during()
            return [*found]
        return [("p", "id")] if b"key_column_usage" in sql else [("P",), ("changed",)]


async def tables_of(known: KnownCascades, parent: bytes) -> list[bytes]:
    return [each.table for each in await known.of(parent)]


@pytest.mark.parametrize("fold_case", [False, True])
async def test_one_query_for_all_tables(*, fold_case: bool) -> None:
    target = _Target()
    known = KnownCascades(cast("Connection", target), fold_case=fold_case)
    for _ in range(2):
        assert await tables_of(known, b"`a`.`Parent`") == [b"`b`.`one`"]
        assert await tables_of(known, b"`a`.`parent`") == ([b"`b`.`one`"] if fold_case else [])
        assert await tables_of(known, b"`a`.`other`") == []
    assert target.asked == ["rules"]
    (cascade,) = await known.of(b"`a`.`Parent`")
    assert cascade.kept == (b"`changed`",)


async def test_what_is_forgotten_is_asked_again() -> None:
    target = _Target()
    known = KnownCascades(cast("Connection", target), fold_case=False)
    assert await tables_of(known, b"`a`.`Parent`") == [b"`b`.`one`"]
    target.children.append("two")
    known.forget()
    assert await tables_of(known, b"`a`.`Parent`") == [b"`b`.`one`", b"`b`.`two`"]


async def test_what_is_forgotten_while_it_is_asked_for_is_not_kept() -> None:
    """A worker may apply a definition while another one asks."""
    target = _Target()
    known = KnownCascades(cast("Connection", target), fold_case=False)
    target.during = known.forget
    assert await tables_of(known, b"`a`.`other`") == []
    target.during = lambda: None
    target.children.append("two")
    assert await tables_of(known, b"`a`.`Parent`") == [b"`b`.`one`", b"`b`.`two`"]


@pytest.mark.servers
async def test_columns_that_are_not_logged_have_not_changed() -> None:
    """Rows of a table whose only key may be NULL need not be whole."""
    child = Cascade(b"c", (b"`x`", b"`y`"), ("a", "u"), "SET NULL", "CASCADE")
    made = []
    with Server() as server:
        server.sql("CREATE DATABASE s; CREATE TABLE s.n (a INT, u INT, v INT, UNIQUE (a, u))")
        server.sql("INSERT INTO s.n VALUES (1, 2, 3)")
        partial = "SET binlog_row_image = MINIMAL"
        events = logged(server, [partial, "UPDATE n SET v = 4", "UPDATE n SET u = 5"], "s")
        session = await open_session(server)
        layout = None
        for event in events:
            if event[4] == EventType.TABLE_MAP_EVENT:
                there = await load_table(session.connection, "s", "n")
                layout = layout_of(parse_table_map(event), there)
            elif event[4] in UPDATES and layout is not None and not isinstance(layout, Refused):
                made.append([each.sql for each in cascaded(event, layout, [child])])
        session.connection.close()
    unchanged, (changed,) = made
    assert unchanged == []
    assert changed.startswith(b"UPDATE IGNORE c SET `x`=1,`y`=5 WHERE `x`=1 AND `y`=2 AND NOT ")
