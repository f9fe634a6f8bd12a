"""What is remembered of the foreign keys that cascade from a target's tables."""

from collections.abc import Callable
from typing import cast

import pytest

from mtsd.target.repeated_cascades import KnownCascades
from mtsd.wire.connection import Connection


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
