"""Which way each group takes to the target: every kind, with every fact that there can be."""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from mtsd.model.group import GroupKind, GroupOpened
from mtsd.model.xa_xid import XaXid
from mtsd.replica.ways.choose import (
    BatchWay,
    GroupFacts,
    Question,
    Way,
    choose,
    choose_batch,
    choose_streamed,
)
from tests.schedule.worlds.streams import group

PAGE = Path(__file__).parents[3] / "docs" / "ways.md"
CONDITIONS = {
    "again": ("in a repair, a second time", "the first time"),
    "only_temporary": ("only temporary tables", "other tables"),
    "only_rows": ("rows", "statements"),
    "rolled_back": ("rolled back by the source", "committed by the source"),
    "can_be_rolled_back": ("all can be rolled back on the target", "not all can be rolled back"),
    "is_more_than_its_gtid_holds": ("several statements that keep their GTID", "no GTID to keep"),
}
Row = tuple[tuple[str, ...], Way]
IN_DOUBT = frozenset({
    Way.DEFINITION, Way.TABLE, Way.BRANCH, Way.COMPLETION, Way.AT_ONCE, Way.UNDER_ITS_GTID,
})  # fmt: skip


def occurs(known: GroupFacts) -> bool:
    """Return whether a source makes such groups."""
    if known.kind in {GroupKind.STATEMENTS, GroupKind.NON_TRANSACTIONAL}:
        with_rows = known.kind is GroupKind.NON_TRANSACTIONAL
        return not known.only_rows or (with_rows and not known.only_temporary)
    if known.rolled_back or (known.only_temporary and known.kind is not GroupKind.DDL):
        return False
    if known.kind in {GroupKind.EMPTY, GroupKind.INCIDENT}:
        return not known.again
    return known.only_rows is (known.kind is GroupKind.ROWS)


def decided() -> Iterator[tuple[GroupFacts, Way]]:
    """Yield everything that can be known of a group, with its way."""
    for kind, (again, temporary, rows, rolled_back, undo, more) in product(
        GroupKind, product((False, True), repeat=len(CONDITIONS))
    ):
        known = GroupFacts(kind, rows, rolled_back, temporary, again, undo, more)
        way = choose(known)
        if occurs(known):
            assert isinstance(way, Way), known
            yield known, way


def test_the_target_is_asked_only_where_that_decides() -> None:
    for known, way in decided():
        open_one = replace(known, can_be_rolled_back=None, is_more_than_its_gtid_holds=None)
        found = choose(open_one)
        if found is Question.CAN_BE_ROLLED_BACK:
            others = {choose(replace(known, can_be_rolled_back=each)) for each in (True, False)}
            assert len(others) == 2, known
        elif found is not Question.FITS_ITS_GTID:
            assert found is way


def test_what_cannot_be_rolled_back_is_in_doubt() -> None:
    for known, way in decided():
        if known.can_be_rolled_back or way in {Way.RECORDED, Way.TEMPORARY, Way.REFUSED}:
            continue
        assert way in IN_DOUBT, known
    assert {way for _, way in decided()} == set(Way) - {Way.STREAMED}


def test_a_streamed_group() -> None:
    opened = GroupOpened(1, None, 0, 0, b"")
    assert choose_streamed(opened) is Way.STREAMED
    assert choose_streamed(replace(opened, creates_table=True)) is Way.TABLE
    assert choose_streamed(replace(opened, xid=XaXid(1, b"x", b""))) is Way.BRANCH


def test_a_batch() -> None:
    for kind in GroupKind:
        way = choose_batch((replace(group(1, "a"), kind=kind),))
        if kind in {GroupKind.STATEMENTS, GroupKind.NON_TRANSACTIONAL}:
            assert way is BatchWay.TOGETHER
        else:
            assert (way is BatchWay.COMBINED) is (kind is GroupKind.ROWS)
            assert way is not BatchWay.TOGETHER


def rows_of(table: list[tuple[GroupFacts, Way]], conditions: list[str]) -> list[Row]:
    """Return the rows of a table, without the conditions that make no difference."""
    if not conditions:
        assert len({way for _, way in table}) == 1
        return [((), table[0][1])]
    name, *others = conditions
    parts = []
    for value in (True, False):
        part = [each for each in table if getattr(each[0], name) is value]
        if part:
            parts.append((value, rows_of(part, others)))
    if len(parts) == 1 or parts[0][1] == parts[1][1]:
        return parts[0][1]
    said = CONDITIONS[name]
    return [
        ((said[not value], *conditions), way) for value, rows in parts for conditions, way in rows
    ]


INTRODUCTION = """# Ways

How a group that is applied by itself reaches the target. `mtsd/replica/ways/choose.py` decides; its
test writes this table (`WRITE_WAYS=1`). Groups of rows are usually combined: they are here where
one of them has failed, or is not transactional on the target. What is in doubt has a record in
`slave_in_doubt` while it is applied (`mtsd/schedule/doubt.py`).

| kind | where | way | in doubt |
|---|---|---|---|
"""
END = """
What is larger than can be held in memory is applied while it is read: a CREATE TABLE … SELECT as a
table, an XA transaction as a branch, and everything else streamed: in one transaction, and in
pieces and in doubt from a change on that cannot be rolled back.
"""


def page() -> str:
    lines = []
    for kind in GroupKind:
        table = [each for each in decided() if each[0].kind is kind]
        for conditions, way in rows_of(table, [*CONDITIONS]):
            doubt = "yes" if way in IN_DOUBT else ""
            lines.append(f"| {kind.value} | {'; '.join(conditions)} | {way.value} | {doubt} |\n")
    return INTRODUCTION + "".join(lines) + END


def test_the_page_is_current() -> None:
    if os.environ.get("WRITE_WAYS"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page()
