"""A worker with the sessions and the applier that it works with."""

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import replace

import structlog

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.appliers.making import applier_by_binlog, applier_by_sql
from mtsd.apply.appliers.sql_rows import ROW_MODE
from mtsd.apply.branches.branch_sessions import BranchSessions
from mtsd.apply.position.fencing import hold_lock
from mtsd.apply.position.lock_holder import describe_holder
from mtsd.apply.position.lock_names import CHANNEL, LockNames, SessionOf
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.convergent_sql import ChangeMode
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.apply.session.xa import needs_branch_sessions
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.config import Settings
from mtsd.model.errors import ConnectionLostError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook
from mtsd.model.parallel_type import BY_THE_SOURCE
from mtsd.model.server import flavour_of_identity
from mtsd.replica.core.apply_mode import change_of
from mtsd.replica.core.coordinator import Coordinator
from mtsd.replica.core.endpoints import about_session
from mtsd.replica.core.report import first_groups
from mtsd.replica.recovery.recovery import Recovered
from mtsd.replica.workers.attempts import WorkerSettings
from mtsd.replica.workers.worker import Worker
from mtsd.schedule.done.repair import again_of
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.failure import BUSY
from mtsd.wire.traits import ServerTraits

log = structlog.get_logger(__name__)

_TIMEOUT_S = 10


async def open_worker(
    index: int,
    settings: Settings,
    tables: PositionTables,
    locks: LockNames,
    coordinator: Coordinator,
    recovered: Recovered,
    reached: FaultHook,
    current: CurrentEndpoint,
    traits: ServerTraits,
    known: KnownTables,
    *,
    preserves: bool,
    as_sql: bool,
) -> Worker:
    """Open the session of the worker `index`, from 0, take its lock, and return the worker.

    `traits` are the target's. With `preserves`, each group commits under its own GTID; with
    `as_sql`, rows are applied by SQL statements rather than by BINLOG. Raises NeedsPersonError,
    ServerError, ConnectionLostError.
    """
    change = change_of(settings.replica, repairs=recovered.repair is not None)
    # Where a row that is missing is no error, it matters whether anything has changed.
    found_rows = as_sql and change is ChangeMode.STRICT
    session_settings = SessionSettings(
        settings.target.binary_log,
        settings.target.gtid_domain_id,
        ROW_MODE if as_sql else b"0",
        flavour_of_identity(recovered.source_uuid),
        rows_as_sql=as_sql,
        keeps_definers=settings.target.definer == "source",
        about=about_session(settings, f"worker {CHANNEL + 1 + index}"),
        known=traits,
    )
    worker_id = CHANNEL + 1 + index

    async def open_session() -> TargetSession:
        endpoint = replace(current.endpoint, found_rows=found_rows)
        return await TargetSession.open(endpoint, session_settings, reached=reached)

    session = await open_session()
    lock = locks.session(worker_id)
    try:
        if not await hold_lock(session, lock, _TIMEOUT_S):
            raise NeedsPersonError(
                f"worker {worker_id} cannot begin, as a session that mtsd did not open is in its"
                f" place: {await describe_holder(session.connection, lock)}"
            )
    except BaseException:
        session.connection.close()
        raise
    branch_sessions = None
    if needs_branch_sessions(session.connection):
        branch_lock = locks.session(worker_id, SessionOf.BRANCH)
        branch_sessions = BranchSessions(
            current, session_settings, branch_lock, found_rows=found_rows, reached=reached
        )

    def applier_of(
        session: TargetSession, branch_sessions: BranchSessions | None = None
    ) -> Applier:
        if as_sql:
            return applier_by_sql(
                session,
                tables,
                known=known,
                preserves=preserves,
                change=change,
                newer=settings.replica.newer_row_column,
                again=None if recovered.repair is None else recovered.repair.again,
                branch_sessions=branch_sessions,
                reached=reached,
            )
        return applier_by_binlog(
            session,
            tables,
            settings.replica.batch_bytes,
            known=known,
            preserves=preserves,
            by_clock=_goes_by_clock(settings),
            branch_sessions=branch_sessions,
            reached=reached,
        )

    async def open_other(of: SessionOf) -> Applier | None:
        try:
            session = await open_session()
        except ServerError as error:
            if error.number not in BUSY:
                raise
            log.warning(
                "no further session for large transactions: fewer of their commits overlap",
                worker=worker_id, error=str(error),
            )  # fmt: skip
            return None
        lock = locks.session(worker_id, of)
        try:
            if not await hold_lock(session, lock, _TIMEOUT_S):
                raise ConnectionLostError("target", f"somebody else holds the lock {lock}")
        except BaseException:
            session.connection.close()
            raise
        return applier_of(session)

    return Worker(
        index,
        applier_of(session, branch_sessions),
        coordinator,
        recovered.rows[index],
        WorkerSettings(
            transaction_retries=settings.replica.transaction_retries,
            skip_errors=frozenset(settings.replica.skip_errors),
            daemon_uuid=recovered.daemon_uuid,
            show_themselves=recovered.show_themselves,
            again=again_of(recovered.repair),
            first_groups=first_groups(recovered.executed.highest),
        ),
        reached,
        open_other,
    )


async def opened_together(opening: Iterable[Coroutine[None, None, Worker]]) -> list[Worker]:
    """Open workers at once, as each one waits for answers; if one cannot be, none is left open.

    Raises what the first one raises that fails.
    """
    tasks = [asyncio.create_task(each) for each in opening]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(ended, BaseException):
                ended.applier.close()
        raise


def _goes_by_clock(settings: Settings) -> bool:
    """Return whether the source's clock tells what may change places within a transaction.

    A single worker keeps the source's order. Where databases of the source are one on the target,
    groups already have the clock of that one (see `merged_databases`).
    """
    return settings.replica.parallel_type in BY_THE_SOURCE and settings.replica.parallel_workers > 1
