"""Why something has to wait: one name for each cause, from the schedule to the status."""

import enum
from collections.abc import Set as AbstractSet
from typing import Final

from mtsd.model.group import Group, GroupKind


class WaitCause(enum.StrEnum):
    """What has to change before a group can proceed.

    Those in `OF_READING` keep the dispatcher from adding the next group of the stream,
    `COMMIT_ORDER` keeps a worker from finishing what it has begun, and it and the others keep an
    idle one from beginning the head of its queue. A worker's queue has no limit of its
    own: it holds no more than the GAQ.
    """

    GAQ_FULL = "gaq_full"
    """The GAQ contains checkpoint_group groups past the stored low-water mark."""
    PENDING_BYTES = "pending_bytes"
    """pending_jobs_size_max bytes are queued."""
    STREAMED = "streamed"
    """A group too large to be queued has to be next before it is applied while it is read."""
    PARTITION = "partition"
    """Another worker has an earlier group on a partition of the group."""
    DEPENDENCY = "dependency"
    """A group that it depends on has not committed.

    By the source's clock, by its rows, or because it completes an XA transaction.
    """
    ALONE = "alone"
    """It runs alone, or an earlier group does."""
    COMMIT_ORDER = "commit_order"
    """What it has applied commits, or counts as failed, only after all earlier groups.

    Where that is the source's order, what is not only rows begins after them.
    """
    FROZEN = "frozen"
    """A person has frozen its worker, or the one that is to apply it while it is read."""


OF_READING: Final = frozenset({WaitCause.GAQ_FULL, WaitCause.PENDING_BYTES, WaitCause.STREAMED})
"""Causes for which the dispatcher waits; for the others a worker does."""


def cause_of_head(
    head: Group, mark: int, unfinished_alone: AbstractSet[int], *, by_names: bool, in_order: bool
) -> WaitCause:
    """Return why the head of a worker's queue cannot begin; `mark` is what it waits for, or 0.

    `unfinished_alone` are the groups that run alone, `by_names` and `in_order` the policy's and
    the schedule's.
    """
    if mark and (mark in unfinished_alone or head.number in unfinished_alone):
        return WaitCause.ALONE
    if mark and in_order and head.kind is not GroupKind.ROWS:
        return WaitCause.COMMIT_ORDER
    if by_names and head.kind is not GroupKind.XA_COMPLETE:
        return WaitCause.PARTITION
    return WaitCause.DEPENDENCY
