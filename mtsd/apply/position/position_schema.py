"""Whether position tables are those that mtsd has created: decided without any query."""

from collections.abc import Iterable, Mapping, Sequence

from mtsd.apply.position.handed_over_table import HANDED_OVER
from mtsd.apply.position.last_stop_table import LAST_STOP
from mtsd.apply.position.mark_table import MARKS
from mtsd.apply.position.policy_table import CHOSEN_POLICY
from mtsd.apply.position.worker_info import COLUMNS
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import Position
from mtsd.schedule.done.worker_row import WorkerRow

FIRST_TABLES = ("slave_worker_info", "slave_relay_log_info", "slave_in_doubt")
"""If one of them is missing, there is no position."""
RULES_TABLE = "slave_channel_filter"
OF_FAILED_GROUPS = ("slave_stopped_group", "slave_skipped_group")
PREPARED = "slave_prepared_transaction"
SPLIT_BRANCHES = "slave_split_branch"
DESPITE_EXECUTED = "slave_despite_executed"
IDENTITY = "slave_target_identity"
COLUMNS_OF = {
    "slave_worker_info": tuple(column.name for column in COLUMNS),
    MARKS.name: tuple(column.name for column in MARKS.columns),
}
"""Those of the tables of which every start reads all: no other ones are understood."""
LOCK_TOKEN = "slave_lock_token"  # noqa: S105 - the name of a table
"""Made before all others, as their locks have it in their names."""
TABLES = (
    *FIRST_TABLES, *OF_FAILED_GROUPS, RULES_TABLE, PREPARED, SPLIT_BRANCHES, DESPITE_EXECUTED,
    IDENTITY, LAST_STOP, CHOSEN_POLICY, HANDED_OVER, LOCK_TOKEN,
)  # fmt: skip
"""All of them; a start adds those that an older mtsd has not created."""
STATUS_TABLES = "replication_applier_status_by_worker", "heartbeat"
"""Beside them, if they are asked for: they say how it goes, and no start reads them."""
_PROVING_NOTHING = {
    "slave_relay_log_info", RULES_TABLE, DESPITE_EXECUTED, IDENTITY, LAST_STOP,
    CHOSEN_POLICY, HANDED_OVER, LOCK_TOKEN,
}  # fmt: skip
PROVING = tuple(name for name in TABLES if name not in _PROVING_NOTHING)
"""Those that say something about numbers of groups, which begin again with a channel."""

_SHOWN = 8
"""How many workers are named: their number may have been changed by hand."""
PARTIAL = Reason(
    "{missing} missing in the position schema {schema}, but the other tables there have rows",
    "restore what is missing from a backup; or, after comparing the servers, drop {schema} and"
    " start over",
)
NO_TRANSACTIONS = Reason(
    "the position tables {tables} in {schema} are not InnoDB: the position would not commit"
    " together with the data",
    "stop the daemon, and ALTER TABLE … ENGINE = InnoDB",
)
ALTERED = Reason(
    "the columns of {schema}.{table} are not those that mtsd has created: {columns}",
    "restore its definition, or set [target] schema to another one",
)
ROW_LOST = Reason(
    "the row of channel {channel!r} in {schema}.slave_relay_log_info is gone, which says up to"
    " where everything is applied",
    "compare the servers, and say where to continue with mtsd position set; mtsd position reset"
    " begins anew at [source] start",
)
SCHEMA_LOST = Reason(
    "the position schema {schema} is gone, and with it what says up to where everything is applied",
    "compare the servers, and say where to continue with mtsd position set: a start without that"
    " begins anew at [source] start",
)
WORKERS_LOST = Reason(
    "rows of channel {channel!r} in {schema}.slave_worker_info are gone, of workers {workers}:"
    " nothing says what these have applied beyond {position}",
    "compare the servers, and say where to continue with mtsd position set",
)
ROW_OLDER = Reason(
    "channel {channel!r} has come to group {number} by {schema}.slave_relay_log_info, but to group"
    " {known} by slave_worker_info: the former is older, or was changed by hand, and what lies"
    " between would be applied again",
    "put back both tables as they were at one moment, or compare the servers and say where to"
    " continue with mtsd position set",
)
VERSION = Reason(
    "the position tables in {schema} have schema version {version}; this mtsd reads {known}",
    "run the mtsd version that wrote them",
)


def defect(
    schema: str, engines: Mapping[str, str], columns: Mapping[str, Sequence[str]], *, filled: bool
) -> Refused | None:
    """Decide what prevents mtsd from using the existing tables.

    `engines`: by table, of the `TABLES` that exist; `columns`: those of the tables in `COLUMNS_OF`;
    `filled`: whether any of the tables has a row. None if all is well, or what is missing can be
    created: a first start may have been killed while it created them.
    """
    missing = [name for name in FIRST_TABLES if name not in engines]
    if missing and filled:
        return refuse(PARTIAL, missing=", ".join(missing), schema=schema)
    others = [name for name, engine in engines.items() if engine.upper() != "INNODB"]
    if others:
        return refuse(NO_TRANSACTIONS, tables=", ".join(sorted(others)), schema=schema)
    for table, created in COLUMNS_OF.items():
        if table in engines and tuple(columns[table]) != created:
            return refuse(ALTERED, schema=schema, table=table, columns=", ".join(columns[table]))
    return None


def lost_row(schema: str, channel: str, *, remains: bool) -> Refused | None:
    """Decide whether a channel without a row has lost it, rather than never begun.

    `remains`: whether another table of `PROVING` has rows of the channel. What they prove of its
    numbers would count for those of a channel that begins.
    """
    return refuse(ROW_LOST, schema=schema, channel=channel) if remains else None


def _lost_workers(
    schema: str, channel: str, position: Position, workers: int, present: Iterable[int]
) -> Refused | None:
    """Decide whether rows of the last run's `workers` are gone; `present` are the ids of all rows.

    What the lost ones prove done past `position` would be applied again: without a key, doubled in
    silence.
    """
    lost = sorted(set(range(1, workers + 1)).difference(present))
    if not lost:
        return None
    ids = ", ".join(map(str, lost[:_SHOWN])) + (", …" if len(lost) > _SHOWN else "")
    return refuse(WORKERS_LOST, channel=channel, schema=schema, workers=ids, position=position)


def lost_table(schema: str, error: ServerError) -> Refused | None:
    """Decide whether a statement of mtsd has failed because its position is gone from the target.

    In any language, the text of the error has the name of what is missing. What the next start
    says of a lost table is the same.
    """
    if error.number == ER.BAD_DB_ERROR and f"'{schema}'" in error.text:
        return refuse(SCHEMA_LOST, schema=schema)
    if error.number != ER.NO_SUCH_TABLE:
        return None
    lost = next((name for name in FIRST_TABLES if f"'{schema}.{name}'" in error.text), None)
    return None if lost is None else refuse(PARTIAL, missing=lost, schema=schema)


def _older_row(schema: str, channel: str, number: int, bases: Iterable[int]) -> Refused | None:
    """Decide whether the channel's row, which has come to `number`, is older than its workers'.

    `bases` are the `Checkpoint_seqno` of these: one past a mark that was stored before. Somebody
    has put back one table without the other.
    """
    known = max(bases, default=1) - 1
    if known <= number:
        return None
    return refuse(ROW_OLDER, channel=channel, schema=schema, number=number, known=known)


def inconsistent(
    schema: str, channel: str, mark: LowWaterMark, workers: int, rows: Sequence[WorkerRow]
) -> Refused | None:
    """Decide whether the rows of a channel's last `workers` do not go with its `mark`."""
    return _lost_workers(
        schema, channel, mark.position, workers, (row.id for row in rows)
    ) or _older_row(schema, channel, mark.number, (row.executed.base for row in rows))
