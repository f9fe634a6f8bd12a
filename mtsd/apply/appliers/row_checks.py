"""What a session checks while rows are written as SQL: as the flags of their events say."""

from collections.abc import Iterator
from typing import Final

from mtsd.apply.rows.row_sql import SqlStatement
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_state import LOCK_WAIT_S, changes
from mtsd.apply.session.statement_states import FOREVER
from mtsd.apply.tables.table_layout import TableLayout
from mtsd.binlog.events.rows import (
    NO_CHECK_CONSTRAINT_CHECKS,
    NO_FOREIGN_KEY_CHECKS,
    RELAXED_UNIQUE_CHECKS,
    USE_SQL_FOREIGN_KEY,
)

UNCHECKED: Final = -1
"""Of a statement: it may find any number of rows."""
_NOW: Final = b"DEFAULT"
"""The session's timestamp, unless a row event's time counts."""


def checked(session: TargetSession) -> bytes:
    """Return what the session has between the statements of rows."""
    return _set_checks(session, keys=True, unique=True)


def checks_of(
    session: TargetSession,
    event: bytes,
    layout: TableLayout,
    *,
    forced: bool,
    cascades: bool = True,
) -> bytes:
    """Return the SET statement for a row event: for its flags, and for its time if that counts.

    If the source logs what a foreign key's cascade has changed, it must not happen here again.
    `forced`: the rows do not depend on others. Without `cascades`, nor do others depend on them.
    """
    time = b"%d" % int.from_bytes(event[:4], "little") if layout.takes_time else _NOW
    if forced:
        return _set_checks(session, keys=False, unique=True, time=time)
    flags = event[25] | event[26] << 8
    unique = not flags & RELAXED_UNIQUE_CHECKS
    constraints = not flags & NO_CHECK_CONSTRAINT_CHECKS
    keys = cascades and checks_keys(event)
    return _set_checks(session, keys=keys, unique=unique, constraints=constraints, time=time)


def checks_keys(event: bytes) -> bool:
    """Return whether foreign keys cascade from the rows of an event, and nothing else tells it."""
    flags = event[25] | event[26] << 8
    return not flags & (NO_FOREIGN_KEY_CHECKS | USE_SQL_FOREIGN_KEY)


def between(
    now: tuple[bytes, dict[bytes, bytes]], wanted: tuple[bytes, dict[bytes, bytes]]
) -> Iterator[SqlStatement]:
    """Yield what leads from one state, of checks and of what is computed, to another."""
    if now[0] != wanted[0]:
        yield SqlStatement(wanted[0], UNCHECKED, "")
    if setting := changes(now[1], wanted[1]):
        yield SqlStatement(setting, UNCHECKED, "")


def _set_checks(
    session: TargetSession,
    *,
    keys: bool,
    unique: bool,
    constraints: bool = True,
    time: bytes = _NOW,
) -> bytes:
    checks = (
        b"SET @@session.foreign_key_checks=%d, @@session.unique_checks=%d, @@session.timestamp=%b"
        % (keys, unique, time)
    )
    if session.family.sets_constraint_checks:
        checks += b", @@session.check_constraint_checks=%d" % constraints
    if session.traits.loses_cascade_errors and not session.limits_lock_waits:
        # Nothing tells of a cascade that has waited too long: the row would count as missing.
        checks += b", @@session.innodb_lock_wait_timeout=%b" % (
            FOREVER if keys else b"%d" % LOCK_WAIT_S
        )
    return checks
