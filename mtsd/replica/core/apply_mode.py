"""How rows are applied: by BINLOG statements or by SQL, as decided from settings and servers."""

from dataclasses import replace

from mtsd.apply.rows.convergent_sql import ChangeMode
from mtsd.config import ReplicaSettings, Settings
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import Flavour

NOT_BY_BINLOG = Reason(
    '[target] apply_mode is "binlog", but the source is {source} and the target is {target}, which'
    " does not know its row events",
    'set [target] apply_mode = "auto" or "sql"',
)


def applies_sql(
    settings: Settings, source: Flavour, target: Flavour, *, allowed: bool
) -> bool | Refused:
    """Return whether rows are applied by SQL statements rather than by BINLOG.

    `allowed` is whether the target accepts BINLOG statements from its user. The server's idempotent
    mode for BINLOG would hide that a transaction before has failed.
    """
    mode = settings.target.apply_mode
    if source is not target:
        if mode == "binlog":
            return refuse(NOT_BY_BINLOG, source=source.value, target=target.value)
        return True
    if mode == "auto" and not allowed:
        return True
    return mode == "sql" or is_idempotent(settings.replica)


def keeps_order(replica: ReplicaSettings) -> bool:
    """Return whether no group commits without those that it depends on."""
    return replica.consistency != "eventual" or replica.parallel_workers <= 1


def in_repair(settings: Settings) -> Settings:
    """Return the settings with which is repaired what a run without order has left.

    Groups keep the order that the policy demands, and rows are applied so that they can be applied
    twice. There is no delay: most of it has been applied already, and until all of it is, the
    target has a state that the source never had.
    """
    return replace(
        settings,
        replica=replace(
            settings.replica,
            consistency="partition",
            exec_mode="idempotent",
            split_transactions="off",
            delay=0,
        ),
        target=replace(settings.target, apply_mode="sql"),
    )


def change_of(replica: ReplicaSettings, *, repairs: bool) -> ChangeMode:
    """Return how rows are applied as SQL; `repairs`: after a run without order."""
    if repairs or replica.newer_row_column:
        return ChangeMode.CONVERGENT
    return ChangeMode.IDEMPOTENT if is_idempotent(replica) else ChangeMode.STRICT


def is_idempotent(replica: ReplicaSettings) -> bool:
    """Return whether a row that exists already, or does not exist, is no error."""
    if replica.exec_mode == "auto":
        return replica.consistency == "eventual"
    return replica.exec_mode == "idempotent"
