"""A streamed group that goes on piece by piece: a change of it cannot be rolled back."""

from collections.abc import Awaitable, Callable
from typing import Final

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.rows.bundle import table_maps
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.model.errors import ApplyError
from mtsd.model.group import GroupKind, GroupOpened
from mtsd.model.position import NOWHERE
from mtsd.model.step import Statement, StatementKind, Step, row_events
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.ways.xa_groups import without_transactions

UNDONE: Final = (
    "it was rolled {what}. Such groups are rolled back here, too, if replica.pending_jobs_size_max"
    " is larger than they are"
)


class Pieces:
    """Those of one group: from the first such change on, each statement commits by itself.

    Until then the group is one transaction. What is open of it is committed with the record that
    the group is in doubt; from there on it can no longer be undone, and is finished even if a stop
    is requested.
    """

    def __init__(
        self, applier: Applier, coordinator: Coordinator, opened: GroupOpened, worker_id: int
    ) -> None:
        self._applier = applier
        self._coordinator = coordinator
        self._opened = opened
        self._worker_id = worker_id
        self.have_begun = False

    def record(self, steps: tuple[Step, ...] = ()) -> InDoubt:
        """Return the record that a part of the group remains, with the databases of these steps."""
        return InDoubt(
            number=self._opened.number,
            worker_id=self._worker_id,
            end=NOWHERE,
            kind=GroupKind.NON_TRANSACTIONAL.value,
            evidence="",
            source_gtid=str(self._opened.gtid or ""),
            databases=",".join(_databases_of(steps)),
            statement=b"",
        )

    async def take(
        self, steps: tuple[Step, ...], commit: Callable[[InDoubt], Awaitable[None]]
    ) -> tuple[Step, ...]:
        """Begin, by `commit`, if the steps change non-transactional tables of the target.

        Return what is still to be applied: nothing if a stop has come before that. Raises
        ApplyError if they cannot be applied, ServerError.
        """
        rolls_back = any(map(_rolls_back, steps))
        if self.have_begun:
            if rolls_back:
                raise ApplyError(UNDONE.format(what="back to a savepoint"))
            return steps
        named = await without_transactions(self._applier, steps, self._coordinator.definitions)
        if not named:
            return steps
        if rolls_back:
            raise ApplyError(
                f"it changes {named}, which is not transactional on the target, and rolls back to a"
                " savepoint. Raise replica.pending_jobs_size_max above its size"
            )
        if self._applier.preserves:
            raise ApplyError(
                f"it changes {named}, which is not transactional on the target, and is"
                " too large for one statement, which is all that its GTID can hold. Raise"
                " replica.pending_jobs_size_max here and max_allowed_packet on the target above"
                ' its size, or set [target] gtid to a value other than "preserve"'
            )
        if not self._coordinator.reads_on:
            return ()
        # A stop still accepts everything that has begun, also one that comes during the commit.
        self._coordinator.scheduler.begin_streamed(self._opened.number)
        await commit(self.record(steps))
        self.have_begun = True
        return steps


def _rolls_back(step: Step) -> bool:
    """Return whether it undoes some of what the group has changed before."""
    return isinstance(step, Statement) and step.kind is StatementKind.ROLLBACK_TO


def _databases_of(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """Return the databases that steps change, as far as the source says."""
    databases: dict[str, None] = {}
    for event in table_maps(row_events(steps)):
        databases[parse_table_map(event).database] = None
    for step in steps:
        if isinstance(step, Statement):
            query = step.query
            databases |= dict.fromkeys(query.updated_databases or (query.database,))
    return tuple(filter(None, databases))
