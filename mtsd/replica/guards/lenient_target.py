"""Variables of the target that let something succeed that has to fail.

That a statement fails is what mtsd builds on: a bundle that failed in its middle is known by the
change of the worker's own row, which has to find the row as the bundle before it has left it. Where
that is passed over, transactions are lost or applied twice in silence. Tried on MySQL 9.7 and
MariaDB 10.11 and 11.8, with a row that is missing and one that is there already:

- hold for BINLOG: slave_exec_mode = IDEMPOTENT (MariaDB), replica_skip_errors, slave_skip_errors
  (both families), rbr_exec_mode (MySQL, of a session only, so it is pinned there);
- hold for BINLOG, and change something else: replicate_rewrite_db (MariaDB: rows of one database go
  to another; of MySQL it does not hold), slave_run_triggers_for_rbr (MariaDB: triggers fire);
- hold for definitions: enforce_storage_engine (MariaDB: CREATE TABLE … ENGINE = InnoDB makes
  another kind of table with a note, also for the position tables), sql_if_exists (pinned);
- do not hold for sessions: replica_exec_mode (MySQL), slave_ddl_exec_mode, replicate_do_* and
  replicate_ignore_* (both families).
"""

from collections.abc import Mapping
from typing import Final

from mtsd.apply.session.family import TARGETS
from mtsd.model.outcome.findings import Findings
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import Flavour
from mtsd.wire.connection import Connection

PASSES_OVER = Reason(
    "{variable} = {value} on the target holds for the BINLOG statements of mtsd, too: what has to"
    " fail would be passed over, and transactions lost or applied twice without an error",
    'set it to {wanted} on the target{how}, or [target] apply_mode = "sql"',
)
RENAMES = Reason(
    "replicate_rewrite_db = {value} on the target holds for the BINLOG statements of mtsd, too:"
    " rows would go to another database",
    'unset it on the target and set [filter] rewrite_db instead, or [target] apply_mode = "sql"',
)
OTHER_ENGINE = Reason(
    "enforce_storage_engine = {value} on the target: the position tables would not be InnoDB, and"
    " so not commit together with the data",
    "SET GLOBAL enforce_storage_engine = NULL on the target",
)
FIRES_TRIGGERS = Reason(
    "slave_run_triggers_for_rbr = {value} on the target: triggers fire for the rows of mtsd, too,"
    " and what they change is not considered where transactions are ordered",
    "SET GLOBAL slave_run_triggers_for_rbr = NO on the target, unless you rely on it",
)
_NAMES: Final = (
    "slave_exec_mode", "replica_skip_errors", "slave_skip_errors", "replicate_rewrite_db",
    "slave_run_triggers_for_rbr", "enforce_storage_engine",
)  # fmt: skip
_QUERY: Final = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})".format(
    ",".join(f"'{name}'" for name in _NAMES)
)


def lenient(variables: Mapping[str, str], target: Flavour, *, by_binlog: bool) -> Findings:
    """Decide by a target's global variables, whose names are in lower case.

    `by_binlog`: rows are applied by BINLOG statements.
    """
    stops: list[Refused] = []
    warns: list[Refused] = []
    engine = variables.get("enforce_storage_engine", "")
    if engine.lower() not in {"", "innodb"}:
        stops.append(refuse(OTHER_ENGINE, value=engine))
    if not by_binlog:
        return Findings(tuple(stops))
    mode = variables.get("slave_exec_mode", "STRICT")
    if TARGETS[target].obeys_exec_mode and mode != "STRICT":
        stops.append(
            refuse(PASSES_OVER, variable="slave_exec_mode", value=mode, wanted="STRICT", how="")
        )
    name = "replica_skip_errors" if "replica_skip_errors" in variables else "slave_skip_errors"
    skipped = variables.get(name, "OFF")
    if skipped not in {"", "OFF"}:
        how = " (in its option file, and restart it)"
        stops.append(refuse(PASSES_OVER, variable=name, value=skipped, wanted="OFF", how=how))
    if rewritten := variables.get("replicate_rewrite_db", ""):
        stops.append(refuse(RENAMES, value=rewritten))
    triggers = variables.get("slave_run_triggers_for_rbr", "NO")
    if triggers != "NO":
        warns.append(refuse(FIRES_TRIGGERS, value=triggers))
    return Findings(tuple(stops), tuple(warns))


async def read_leniency(connection: Connection, target: Flavour, *, by_binlog: bool) -> Findings:
    """Query the target and decide. Raises ServerError, ConnectionLostError."""
    rows = await connection.query(_QUERY)
    variables = {str(name).lower(): str(value) for name, value in rows}
    return lenient(variables, target, by_binlog=by_binlog)
