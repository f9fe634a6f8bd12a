"""Gives a session its state, also where its user may not set all of it.

MySQL lets only some users set certain variables of their own session (error 1227; the privilege is
SESSION_VARIABLES_ADMIN), and the users of managed services do not have it. Nothing is lost as long
as such a variable has the wanted value anyway. Measured on 9.7.4, of those of a pinned state:
max_error_count, original_server_version, pseudo_thread_id, sql_generate_invisible_primary_key,
sql_require_primary_key, xa_detach_on_prepare; beside them gtid_next and sql_log_bin. MariaDB has
one of them, pseudo_thread_id, with BINLOG REPLAY.

What the session cannot set is not part of its state. So it keeps its own thread id, and a statement
of the source that depends on another one is refused (`mtsd.apply.session.statement_states`).
"""

from dataclasses import dataclass
from typing import Final

from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.session_state import THREAD_ID, changes
from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import flavour_of
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS

_AUTOMATIC_GTID: Final = b"SET @@session.gtid_next='AUTOMATIC'"

CANNOT_PIN = Reason(
    "{user} may not set {values} in its own sessions on the target, which have other values, and"
    " mtsd needs these",
    "GRANT {privilege} ON *.* TO the user, or set them on the target itself (of a managed service,"
    " in its parameter group)",
)
CANNOT_LOG = Reason(
    "[target] binary_log = {wanted}, but {user} may not set sql_log_bin on the target, where its"
    " sessions have the other value",
    "GRANT {privilege} ON *.* TO the user, or set [target] binary_log = {other}",
)


@dataclass(frozen=True, slots=True)
class Pinned:
    """What a session could be given."""

    refused: frozenset[bytes] = frozenset()
    """Variables that its user may not set."""
    sets_gtids: bool = True
    """Whether its user may say under which GTID a transaction commits, where there are GTIDs."""


async def pin(
    connection: Connection, state: dict[bytes, bytes], *, binary_log: bool
) -> Pinned | Refused:
    """Give a session its state, values by variable, as expressions of SQL.

    `binary_log` is whether its changes are to be in the target's own binlog. Refused if a variable
    that its user may not set has another value. Raises ServerError, ConnectionLostError.
    """
    sets = [changes({}, state)]
    # init_connect may have set it. To set it needs a privilege.
    if not binary_log or not await _is(connection, b"sql_log_bin", b"1"):
        sets.append(b"SET @@session.sql_log_bin=%d" % binary_log)
    try:
        await connection.run(b";".join(sets), len(sets))
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
    else:
        return Pinned()
    user = repr(connection.endpoint.user)
    flavour = flavour_of(connection.server_version)
    # One by one: which of them are restricted depends on the version.
    refused = {
        name: value
        for name, value in state.items()
        if not await _may(connection, changes({}, {name: value}))
    }
    differing = [
        f"{name.decode()} = {value.decode()}"
        for name, value in refused.items()
        if name != THREAD_ID and not await _is(connection, name, value)
    ]
    family = TARGETS[flavour]
    if differing:
        values = ", ".join(differing)
        privilege = family.privilege_to_pin
        return refuse(CANNOT_PIN, user=user, values=values, privilege=privilege)
    if len(sets) > 1 and not await _may(connection, sets[1]):
        wanted, other = ("true", "false") if binary_log else ("false", "true")
        privilege = family.privilege_to_log
        return refuse(CANNOT_LOG, user=user, wanted=wanted, other=other, privilege=privilege)
    sets_gtids = SERVERS[flavour].has_domains or await _may(connection, _AUTOMATIC_GTID)
    return Pinned(frozenset(refused), sets_gtids)


async def _may(connection: Connection, statement: bytes) -> bool:
    """Run a SET statement; return whether the user may."""
    try:
        await connection.run(statement, 1)
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return False
    return True


async def _is(connection: Connection, name: bytes, value: bytes) -> bool:
    """Return whether a variable of the session has the value that SET would give it."""
    wanted = b"@@global." + name if value == b"DEFAULT" else value
    ((same,),) = await connection.query(b"SELECT @@session.%b<=>%b" % (name, wanted))
    return bool(same)
