"""XA transactions of which both groups wait in one queue: applied as one ordinary transaction.

By itself, each of the two groups costs several durable commits (`mtsd.replica.ways.xa_groups`). If
the commit of what a group prepares waits right there, nothing has to be prepared: the rows can be
part of the target transaction that records both groups, like any others. That is possible because
from its prepare to its completion a transaction holds its locks on the source: nothing that is
logged in between can depend on its rows, so they may as well be changed at the place of the
completion.

A transaction that is rolled back is no pair: what it changed in non-transactional tables remains.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Rows, Statement, StatementKind
from mtsd.schedule.batches.combining import writes_system_tables

_ROWS: Final = GroupKind.ROWS
_PREPARE: Final = GroupKind.XA_PREPARE
_COMPLETE: Final = GroupKind.XA_COMPLETE


def may_be_first(group: Group) -> bool:
    """Return whether what a group prepares can be part of an ordinary transaction of rows."""
    return (
        group.kind is _PREPARE
        and bool(group.rows)
        and all(isinstance(step, Rows) for step in group.steps)
        and not group.alone
        and not group.unsupported
        and group.uses_temporary is None
        and not writes_system_tables(group)
    )


def may_be_second(group: Group) -> bool:
    """Return whether a group does nothing but commit what another has prepared."""
    return (
        group.kind is _COMPLETE
        and len(group.steps) == 1
        and isinstance(group.steps[0], Statement)
        and commits(group)
        and not group.alone
        and not group.unsupported
        and group.uses_temporary is None
    )


def commits(group: Group) -> bool:
    """Return whether the completion of a transaction commits it, or rolls it back."""
    (step,) = group.steps
    if not isinstance(step, Statement):
        raise TypeError(f"group {group.number} completes an XA transaction without a statement")
    return step.kind is StatementKind.XA_COMMIT


def is_one_transaction(batch: Sequence[Group]) -> bool:
    """Return whether a batch, as a queue has composed it, commits as one: groups of rows, pairs.

    The others consist of a single group, or of groups of different XA transactions.
    """
    first = batch[0]
    if first.kind is not _PREPARE:
        return first.kind is _ROWS
    xid = first.xid
    return any(group.xid == xid and group.kind is _COMPLETE for group in batch)


def pairs_together(groups: Sequence[Group]) -> list[tuple[Group, ...]]:
    """Return groups that have begun one by one, but the two of a pair together.

    A pair is in the place of the first. It depends on nothing between them, as nothing depends on
    it.
    """
    units: list[tuple[Group, ...]] = []
    prepared: dict[object, int] = {}
    for group in groups:
        place = prepared.pop(group.xid, None) if group.kind is _COMPLETE else None
        if place is not None:
            units[place] += (group,)
            continue
        if group.kind is _PREPARE:
            prepared[group.xid] = len(units)
        units.append((group,))
    return units


def as_rows(batch: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return what has to be applied of a batch that commits as one: each pair as one group of rows.

    It has the place of the second. A batch without pairs is returned as it is.
    """
    if not any(group.xid is not None for group in batch):
        return batch
    rows: list[Group] = []
    prepared: dict[object, Group] = {}
    for group in batch:
        if group.kind is _PREPARE:
            prepared[group.xid] = group
        elif group.kind is _COMPLETE:
            rows.append(_joined(prepared.pop(group.xid), group))
        else:
            rows.append(group)
    return tuple(rows)


def _joined(prepare: Group, completion: Group) -> Group:
    offset = completion.number - completion.sequence_number
    in_one_clock = (
        prepare.end.file == completion.end.file
        and prepare.number - prepare.sequence_number == offset
    )
    return replace(
        prepare,
        number=completion.number,
        kind=_ROWS,
        end=completion.end,
        gtid=completion.gtid,
        last_committed=prepare.last_committed if in_one_clock else 0,
        sequence_number=completion.sequence_number,
        commit_time=completion.commit_time,
        xid=None,
        commit_id=completion.commit_id,
    )
