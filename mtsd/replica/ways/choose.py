"""How a group reaches the target: the one place that decides, as tables (docs/design.md).

What the source says of a group is known at once. Whether all that it changes can be rolled back on
the target is asked of the target, and so only where that decides: then the answer is a `Question`.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.model.group import Group, GroupKind, GroupOpened
from mtsd.model.step import Rows
from mtsd.schedule.batches.combining import is_of_rows_for_good, is_of_statements
from mtsd.schedule.batches.xa_pairs import is_one_transaction

OVERLAPPING_BYTES: Final = 1 << 16
"""Of a batch: what is smaller waits less for the disk than for the answers in between."""


class Way(enum.Enum):
    """How a group that is applied by itself reaches the target."""

    ROWS = "rows"
    """Its rows and the worker's row in one commit."""
    IN_ORDER = "in order"
    """Its steps one after another, and the worker's row, in one commit."""
    RECORDED = "recorded"
    """It has been applied before, and only its record is written."""
    TEMPORARY = "temporary"
    """Only on temporary tables, with which it is lost if the session ends."""
    DEFINITION = "definition"
    """In doubt: it commits by itself."""
    TABLE = "table"
    """In doubt: a table, and its rows."""
    BRANCH = "branch"
    """In doubt: prepares an XA transaction, or commits it in one phase if it is streamed."""
    COMPLETION = "completion"
    """In doubt: completes an XA transaction."""
    AT_ONCE = "at once"
    """In doubt, and nothing of it can be undone: it is sent as a whole, with what settles it."""
    UNDER_ITS_GTID = "under its GTID"
    """In doubt, and perhaps nothing can be undone: a transaction under the source's GTID."""
    STREAMED = "streamed"
    """In one transaction while it is read; in pieces, and in doubt, from a change on that cannot be
    rolled back."""
    REFUSED = "refused"


class Question(enum.Enum):
    """What decides, and only the target can tell."""

    CAN_BE_ROLLED_BACK = "can everything that it changes be rolled back?"
    FITS_ITS_GTID = "does it have to keep its GTID, and is it more than one statement?"


class BatchWay(enum.Enum):
    """How a batch reaches the target, as a queue has composed it."""

    COMBINED = "combined"
    """Rows of several groups, and pairs of XA transactions, in one commit, one packet ahead; rows
    of tables without transactions in a commit each, with one record for those of a packet."""
    TOGETHER = "together"
    """Transactions of statements, as one if that succeeds."""
    ONE_BY_ONE = "one by one"
    """Each by its own `Way`; groups of different XA transactions share their records."""


class RowsWay(enum.Enum):
    """How the next of the combined batches of a worker is committed."""

    HELD = "held"
    """Applied before its turn, and committed then; at its turn in another way if that fails."""
    OVERLAPPING = "overlapping"
    """On sessions in turn: the next one is applied while this one commits."""
    AHEAD = "ahead"
    """In one packet with others, and the next packet is sent before this one is answered."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What is known of a group in memory."""

    kind: GroupKind
    only_rows: bool = True
    """Whether all its steps are rows."""
    rolled_back: bool = False
    """Whether the source has rolled it back, which leaves what cannot be."""
    only_temporary: bool = False
    """Whether it changes nothing but temporary tables."""
    again: bool = False
    """Whether it has committed before, and is applied again in a repair."""
    can_be_rolled_back: bool | None = None
    """The answer to that question, None before it."""
    is_more_than_its_gtid_holds: bool | None = None
    """The answer to the other one."""


def choose(known: GroupFacts) -> Way | Question:
    """Return the way of a group that is in memory and applied by itself, or what decides."""
    kind = known.kind
    may_undo = known.can_be_rolled_back
    if kind in _IN_ROWS and known.only_rows and not known.rolled_back:
        if may_undo is None:
            return Question.CAN_BE_ROLLED_BACK
        if may_undo:
            return Way.ROWS
    if known.again:
        # Its changes cannot be rolled back, so they are not made twice.
        return Way.RECORDED
    if kind in _OF_XA:
        return _OF_XA[kind]
    if known.only_temporary:
        return Way.TEMPORARY
    if kind in _OF_DEFINITIONS:
        return _OF_DEFINITIONS[kind]
    if kind not in _IN_ROWS and kind is not GroupKind.STATEMENTS:
        return Way.REFUSED
    # Rows that the source has not rolled back would have been sent as such.
    if not known.only_rows or known.rolled_back:
        if may_undo is None:
            return Question.CAN_BE_ROLLED_BACK
        if may_undo:
            return Way.IN_ORDER
    if kind is GroupKind.STATEMENTS:
        if known.is_more_than_its_gtid_holds is None:
            return Question.FITS_ITS_GTID
        if known.is_more_than_its_gtid_holds:
            return Way.UNDER_ITS_GTID
    return Way.AT_ONCE


def choose_streamed(opened: GroupOpened) -> Way:
    """Return the way of a group that is applied while it is read."""
    if opened.creates_table:
        return Way.TABLE
    return Way.STREAMED if opened.xid is None else Way.BRANCH


def choose_batch(batch: Sequence[Group]) -> BatchWay:
    """Return the way of a batch."""
    if is_one_transaction(batch) or is_of_rows_for_good(batch[0]):
        return BatchWay.COMBINED
    return BatchWay.TOGETHER if is_of_statements(batch[0]) else BatchWay.ONE_BY_ONE


def choose_rows(size: int, *, is_its_turn: bool, may_overlap: bool) -> RowsWay:
    """Return the way of a combined batch of `size` bytes.

    `is_its_turn`: it may commit as soon as it is applied. `may_overlap`: what it changes can
    be rolled back, and the target has room for a second session of the worker's.
    """
    if not is_its_turn:
        return RowsWay.HELD
    overlaps = may_overlap and size >= OVERLAPPING_BYTES
    return RowsWay.OVERLAPPING if overlaps else RowsWay.AHEAD


def facts_of(group: Group, *, again: bool) -> GroupFacts:
    """Return what is known of a group; `again`: see there."""
    temporary = group.uses_temporary
    return GroupFacts(
        group.kind,
        all(isinstance(step, Rows) for step in group.steps),
        group.rolled_back,
        temporary is not None and temporary.only,
        again,
    )


_IN_ROWS: Final = frozenset({GroupKind.ROWS, GroupKind.NON_TRANSACTIONAL})
_OF_DEFINITIONS: Final = {
    GroupKind.DDL: Way.DEFINITION,
    GroupKind.CREATE_SELECT: Way.TABLE,
}
_OF_XA: Final = {
    GroupKind.XA_PREPARE: Way.BRANCH,
    GroupKind.XA_COMPLETE: Way.COMPLETION,
}
