"""Makes the applier of a session: with rows passed on undecoded, or as SQL."""

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.appliers.binlog_rows import BinlogRows
from mtsd.apply.appliers.sql_rows import SqlRows
from mtsd.apply.appliers.table_questions import TableQuestions
from mtsd.apply.branches.branch_sessions import BranchSessions
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.rows.convergent_sql import ChangeMode
from mtsd.apply.rows.row_states import RowStates
from mtsd.apply.session.session import TargetSession
from mtsd.apply.tables.known_tables import KnownTables
from mtsd.model.fault_points import FaultHook, nothing
from mtsd.schedule.done.executed_groups import ExecutedGroups


def applier_by_binlog(
    session: TargetSession,
    position: PositionTables,
    batch_bytes: int,
    *,
    known: KnownTables | None = None,
    preserves: bool = False,
    by_clock: bool = False,
    branch_sessions: BranchSessions | None = None,
    reached: FaultHook = nothing,
) -> Applier:
    """Return an applier that passes rows on undecoded; see `BinlogRows`.

    `known` are the tables that all appliers know.
    """
    server = session.traits.server
    states = RowStates(session.states.own, server)
    tables = TableQuestions(session, known or KnownTables(server), states)
    rows = BinlogRows(
        session, position, tables, batch_bytes,
        preserves=preserves, by_clock=by_clock, reached=reached,
    )  # fmt: skip
    return Applier(
        session, position, tables, rows,
        preserves=preserves, branch_sessions=branch_sessions, reached=reached,
    )  # fmt: skip


def applier_by_sql(
    session: TargetSession,
    position: PositionTables,
    *,
    known: KnownTables | None = None,
    preserves: bool = False,
    change: ChangeMode = ChangeMode.STRICT,
    again: ExecutedGroups | None = None,
    newer: str = "",
    branch_sessions: BranchSessions | None = None,
    reached: FaultHook = nothing,
) -> Applier:
    """Return an applier that makes SQL of rows; see `SqlRows`, and `applier_by_binlog`."""
    server = session.traits.server
    states = RowStates(session.states.own, server, as_sql=True)
    tables = TableQuestions(session, known or KnownTables(server, by_binlog=False), states)
    rows = SqlRows(
        session, position, tables,
        preserves=preserves, change=change, again=again, newer=newer, reached=reached,
    )  # fmt: skip
    return Applier(
        session, position, tables, rows,
        preserves=preserves, branch_sessions=branch_sessions, reached=reached,
    )  # fmt: skip
