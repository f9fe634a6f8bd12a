"""What shows whether an in-doubt group was applied: decided without any query.

In this order: what a person has said (`mtsd resolve`); the GTID that it ran under; of an XA
transaction, whether the target has prepared it; the target's own binlog, starting where it was
before; and if there is neither, the error by which a definition shows that it has run before.
`mtsd.replica.evidence` gathers evidence, `mtsd check` predicts.

A group on non-transactional tables is settled by the packet that applies it, so one that is in
doubt has failed, was interrupted, or never began. Only that last case can be recognized: if its
changes are logged, the first one uses up its GTID, unless the server itself was killed before it
logged it.
"""

import enum
from collections.abc import Collection
from typing import Final

from mtsd.binlog.repeatable import errors_of_a_second_time
from mtsd.model.group import GroupKind
from mtsd.model.reason import Reason, Refused, refuse
from mtsd.replica.report import HALF_APPLIED
from mtsd.target.position_tables import InDoubt
from mtsd.target.split_table import SPLIT

_SAY = (
    "say what you found: mtsd resolve --group {number} --applied, or --not-applied, then start"
    " again"
)
_CUT_OFF = (
    "group {number}, ending at {end}, in databases {databases!r}, was being applied when mtsd or"
    " the target was killed, and the target has "
)
NON_TRANSACTIONAL = Reason(
    "group {number}, ending at {end}, in databases {databases!r}, changes non-transactional"
    " tables and has failed or was interrupted: a part of it may have been applied",
    f"{HALF_APPLIED}, then start again",
)
LOG_PURGED = Reason(
    _CUT_OFF + "purged {file}, which would show whether it was applied: {excerpt}",
    f"check whether it has been applied, and {_SAY}",
)
NO_EVIDENCE = Reason(
    _CUT_OFF + "neither GTIDs nor a binlog to show whether it was applied: {excerpt}",
    f"check whether it has been applied, and {_SAY}. With gtid_mode = ON on the target mtsd finds"
    " out by itself",
)
_EXCERPT = 200


class Verdict(enum.Enum):
    """What became of an in-doubt group."""

    APPLIED = "applied"
    NOT_APPLIED = "not applied"
    LOGGED = "logged"
    """Applied if a statement of its thread is in the target's own binlog, else not."""
    PREPARED = "prepared"
    """An XA prepare: applied if the target has prepared its transaction, else not."""
    COMPLETED = "completed"
    """The completion of one: applied if the target does not have it prepared, else not."""
    SHOWS_ITSELF = "shows itself"
    """To be run: if it has run before, it fails with an error that says so."""
    SPLIT = "split"
    """Applied as a whole or not at all, as the target's branches and the record show."""
    NOT_BEGUN = "not begun"
    """Not applied, as long as the target has been running since the record was written."""


_OF_XA: Final = {
    GroupKind.XA_PREPARE.value: Verdict.PREPARED,
    GroupKind.XA_COMPLETE.value: Verdict.COMPLETED,
}


def judge(doubt: InDoubt, *, executed: bool, logs: Collection[str] | None) -> Verdict | Refused:
    """Decide what became of an in-doubt group, or why only a person can tell.

    `executed` is whether the target has executed its evidence GTID; `logs` are the names of
    the target's own binlog files, None if they have not been listed.
    """
    if doubt.resolution:
        return Verdict(doubt.resolution)
    if doubt.kind == SPLIT:
        return Verdict.SPLIT
    if doubt.kind == GroupKind.NON_TRANSACTIONAL.value:
        untouched = doubt.evidence and doubt.target_file and not executed
        return Verdict.NOT_BEGUN if untouched else without_evidence(doubt)
    if doubt.evidence:
        return Verdict.APPLIED if executed else Verdict.NOT_APPLIED
    if doubt.kind in _OF_XA:
        return _OF_XA[doubt.kind]
    if doubt.target_file:
        if logs is not None and doubt.target_file not in logs:
            return _refused(LOG_PURGED, doubt)
        return Verdict.LOGGED
    if errors_of_a_second_time(doubt.statement) is not None:
        return Verdict.SHOWS_ITSELF
    return _refused(NO_EVIDENCE, doubt)


def without_evidence(doubt: InDoubt) -> Refused:
    """Return why only a person can tell what became of a non-transactional group."""
    return _refused(NON_TRANSACTIONAL, doubt)


def _refused(reason: Reason, doubt: InDoubt) -> Refused:
    return refuse(
        reason,
        number=doubt.number,
        end=doubt.end,
        databases=doubt.databases,
        file=doubt.target_file,
        excerpt=repr(doubt.statement[:_EXCERPT].decode("utf-8", "replace")),
    )
