"""Which way each group takes to the target: every kind, with every fact that there can be.

`python -m tests.replica.ways.test_ways` writes the tables into docs/design.md.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from mtsd.model.group import Group, GroupKind, GroupOpened
from mtsd.model.step import Rows as RowsStep
from mtsd.model.xa_xid import XaXid
from mtsd.replica.ways.choose import (
    OVERLAPPING_BYTES,
    BatchWay,
    GroupFacts,
    Question,
    RowsWay,
    Way,
    choose,
    choose_batch,
    choose_rows,
    choose_streamed,
)
from tests.schedule.worlds.streams import group

PAGE = Path(__file__).parents[3] / "docs" / "design.md"
BLOCK = re.compile(r"(?<=<!-- ways -->\n).*(?=<!-- end of ways -->\n)", re.DOTALL)
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
        answer = choose(open_one)
        if answer is Question.CAN_BE_ROLLED_BACK:
            others = {choose(replace(known, can_be_rolled_back=each)) for each in (True, False)}
            assert len(others) == 2, known
        elif answer is not Question.FITS_ITS_GTID:
            assert answer is way


def test_what_cannot_be_rolled_back_is_in_doubt() -> None:
    for known, way in decided():
        if known.can_be_rolled_back or way in {Way.RECORDED, Way.TEMPORARY, Way.REFUSED}:
            continue
        assert way in IN_DOUBT, known
    assert {way for _, way in decided()} == set(Way) - {Way.STREAMED}


OPENED = GroupOpened(1, None, 0, 0, b"")
STREAMED = (
    ("CREATE TABLE … SELECT", replace(OPENED, creates_table=True), Way.TABLE),
    ("an XA transaction", replace(OPENED, xid=XaXid(1, b"x", b"")), Way.BRANCH),
    ("every other one", OPENED, Way.STREAMED),
)


def test_a_streamed_group() -> None:
    for _, opened, way in STREAMED:
        assert choose_streamed(opened) is way


def batches() -> Iterator[tuple[str, tuple[Group, ...], BatchWay]]:
    """Yield each kind of batch that a queue composes."""
    one = group(1, "a")
    prepare = replace(one, kind=GroupKind.XA_PREPARE, xid=XaXid(1, b"x", b""))
    completion = replace(prepare, number=2, kind=GroupKind.XA_COMPLETE)
    for kind in GroupKind:
        if kind not in {GroupKind.EMPTY, GroupKind.INCIDENT}:
            batch = (replace(prepare if kind is GroupKind.XA_PREPARE else one, kind=kind),)
            yield kind.value, batch, choose_batch(batch)
    for_good = replace(
        one, kind=GroupKind.NON_TRANSACTIONAL, steps=(RowsStep((b"",)),), row_flags=1
    )
    yield "non_transactional, only rows, committed", (for_good,), choose_batch((for_good,))
    pair = (prepare, completion)
    yield "xa_prepare, and its xa_complete", pair, choose_batch(pair)


def test_a_batch() -> None:
    ways = {name: way for name, _, way in batches()}
    alone = {name for name, way in ways.items() if way is BatchWay.ONE_BY_ONE}
    assert alone == {"ddl", "create_select", "xa_prepare", "xa_complete"}
    together = {name for name, way in ways.items() if way is BatchWay.TOGETHER}
    assert together == {"statements", "non_transactional"}


SIZES = {OVERLAPPING_BYTES - 1: "less than 64 KiB", OVERLAPPING_BYTES: "64 KiB and more"}
Rows = tuple[int, bool, bool, RowsWay]


def combined() -> Iterator[Rows]:
    """Yield everything that decides about rows, with their way."""
    for size, turn, other in product(SIZES, (False, True), (False, True)):
        way = choose_rows(size, is_its_turn=turn, may_overlap=other)
        yield size, turn, other, way


def test_combined_rows() -> None:
    held = {turn for _, turn, _, way in combined() if way is RowsWay.HELD}
    assert held == {False}
    overlapping = {each[:3] for each in combined() if each[3] is RowsWay.OVERLAPPING}
    assert overlapping == {(OVERLAPPING_BYTES, True, True)}


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
    words = CONDITIONS[name]
    return [
        ((words[not value], *conditions), way) for value, rows in parts for conditions, way in rows
    ]


def table(head: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table, between empty lines."""
    yield ""
    yield head
    yield "|".join(["", *["---"] * (head.count("|") - 1), ""])
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def tables() -> Iterator[str]:
    """Yield the lines of the page."""
    yield "A batch, as a queue has composed it:"
    yield from table("| kind | way |", ((name, way.value) for name, _, way in batches()))
    yield "Combined rows:"
    rows = (
        (
            "it may commit" if turn else "earlier ones commit before it",
            SIZES[size] if turn else "any",
            ("yes" if other else "no") if turn and size >= OVERLAPPING_BYTES else "any",
            way.value,
        )
        for size, turn, other, way in combined()
    )
    head = "| turn (`any_time`) | size of the batch | room for a second session | way |"
    yield from table(head, dict.fromkeys(rows))
    yield "A group that is applied by itself:"
    yield from table("| kind | where | way | in doubt |", singly())
    yield "A group that is applied while it is read:"
    yield from table("| group | way |", ((name, way.value) for name, _, way in STREAMED))


def singly() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of single groups."""
    for kind in GroupKind:
        known = [each for each in decided() if each[0].kind is kind]
        for conditions, way in rows_of(known, [*CONDITIONS]):
            doubt = "yes" if way in IN_DOUBT else ""
            yield kind.value, "; ".join(conditions), way.value, doubt


def page() -> str:
    """Return docs/design.md with the tables as they have to be."""
    text = "\n".join(tables()) + "\n"
    return BLOCK.sub(lambda _: text, PAGE.read_text("utf-8"))


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
