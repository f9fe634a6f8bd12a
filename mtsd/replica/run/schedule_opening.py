"""The schedule of a run, and what it is told of the target: keys and foreign keys."""

from dataclasses import replace
from time import monotonic

from mtsd.apply.session.session import TargetSession
from mtsd.apply.tables.changed_keys import ChangedKeys
from mtsd.apply.tables.foreign_keys import read_foreign_keys
from mtsd.apply.tables.key_definitions import read_key_definitions
from mtsd.binlog.groups.updated_tables import UpdatedTables
from mtsd.config import Settings
from mtsd.model.server import Flavour, flavour_of_identity
from mtsd.replica.core.limits import (
    distribution_of,
    goes_by_foreign_keys,
    goes_by_keys,
    limits_of,
    reads_foreign_keys,
)
from mtsd.replica.recovery.recovery import Recovered
from mtsd.schedule.admission import Filler
from mtsd.schedule.batches.alone import AloneRule
from mtsd.schedule.done.prepared_transactions import Prepared, PreparedTransactions
from mtsd.schedule.policies.assignment import Need
from mtsd.schedule.policies.choice import choose_policy
from mtsd.schedule.policies.foreign_key_families import NO_FOREIGN_KEYS, ForeignKeys
from mtsd.schedule.scheduler import Scheduler
from mtsd.source.family import SOURCES
from mtsd.wire.understood import understood


def worker_count(settings: Settings) -> int:
    """Return how many workers there are: without parallelism it is one."""
    return max(settings.replica.parallel_workers, 1)


@understood("target")
async def read_changed_keys(
    settings: Settings, session: TargetSession, family: Flavour, *, as_sql: bool
) -> ChangedKeys | None:
    """Return what tells the keys of groups; None if the policy does not need it."""
    replica = settings.replica
    if not goes_by_keys(replica):
        return None
    fold_case = session.traits.lower_case_table_names
    known = await read_key_definitions(
        session.connection, session.traits.server.flavour, fold_case=fold_case
    )
    mariadb = SOURCES[family].dialect.tables_of_mariadb
    return ChangedKeys(
        known, fold_case=fold_case, as_sql=as_sql, bind=replica.bind, mariadb=mariadb
    )


@understood("target")
async def read_joined_tables(settings: Settings, session: TargetSession) -> ForeignKeys:
    """Return the target's foreign keys; none if the policy does not need them."""
    if not reads_foreign_keys(settings.replica):
        return NO_FOREIGN_KEYS
    fold_case = session.traits.lower_case_table_names
    return await read_foreign_keys(session.connection, fold_case=fold_case)


def open_schedule(
    settings: Settings,
    session: TargetSession,
    recovered: Recovered,
    changed_keys: ChangedKeys | None,
    foreign_keys: ForeignKeys,
) -> Scheduler:
    """Return the schedule of a run, which goes on after what was recovered."""
    replica = settings.replica
    fold_case = session.traits.lower_case_table_names
    joined = frozenset[str]().union(*foreign_keys.databases)
    if not goes_by_foreign_keys(replica, flavour_of_identity(recovered.source_uuid)):
        # The source tells which groups they concern, of those that are there now.
        foreign_keys = replace(foreign_keys, databases=())
    # One worker always commits in the stream's order.
    eventual = replica.consistency == "eventual"
    in_order = replica.consistency == "any_time" and replica.parallel_workers > 1
    distribution = distribution_of(settings, fold_case=fold_case)
    policy = choose_policy(
        replica.parallel_type,
        replica.parallel_workers,
        distribution.bind,
        foreign_keys,
        in_order=in_order,
        eventual=eventual,
        deletes_in_turn=bool(replica.newer_row_column),
    )
    fillers: dict[Need, Filler] = {Need.TABLES: UpdatedTables(fold_case=fold_case)}
    if changed_keys is not None:
        fillers[Need.KEYS] = changed_keys
    scheduler = Scheduler(
        policy,
        worker_count(settings),
        limits_of(settings),
        recovered.mark,
        recovered.executed,
        fillers=fillers,
        alone=AloneRule(
            ddl=replica.ddl == "alone",
            ddl_in=joined,
            statements=replica.statements == "alone",
            all_but_rows=eventual,
        ),
        prepared=PreparedTransactions(
            (each.xid, Prepared(each.databases, each.alone)) for each in recovered.prepared
        ),
        clock=monotonic,
        in_order=in_order,
        repair=recovered.repair,
    )
    scheduler.distribute(distribution)
    return scheduler
