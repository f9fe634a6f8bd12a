"""Who holds a lock on the target that mtsd wants: sessions of its own, or somebody else's."""

from collections.abc import Mapping

from mtsd.apply.position.signs_of_life import Session
from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import Row
from mtsd.wire.understood import understood

_PROGRAM = "mtsd"
_PROGRAM_OF = (
    b"SELECT attr_value FROM performance_schema.session_account_connect_attrs"
    b" WHERE attr_name='program_name' AND processlist_id=%d"
)


@understood("target")
async def sessions(connection: Connection) -> Mapping[int, Session]:
    """Return the sessions of the same user, or everybody's if the user has PROCESS, by id."""
    rows = await connection.query(b"SHOW PROCESSLIST")
    return {session.id: session for session in map(_session, rows)}


def _session(row: Row) -> Session:
    id_, user, host, _, command, seconds, state, statement, *_ = row
    return Session(
        int(str(id_)), str(command), int(str(seconds or 0)), str(state or ""), str(statement or ""),
        str(user or ""), str(host or ""),
    )  # fmt: skip


def is_of_own_account(seen: Mapping[int, Session], own_id: int, holder: int) -> bool:
    """Decide whether a session has the user of the own one; who cannot be seen has another."""
    return holder in seen and own_id in seen and seen[holder].user == seen[own_id].user


@understood("target")
async def may_kill(connection: Connection, holder: int) -> bool:
    """Return whether a session is one of mtsd's, as far as can be known: user and program.

    Raises ServerError, ConnectionLostError.
    """
    if not is_of_own_account(await sessions(connection), connection.thread_id, holder):
        return False
    try:
        rows = await connection.query(_PROGRAM_OF % holder)
    except ServerError:
        # Not every server, or account, has that table.
        return True
    return all(program == _PROGRAM for (program,) in rows)


def holder_text(holder: int, session: Session | None, *, own: bool) -> str:
    """Say who holds a lock, and, unless that is `own`, that it may be a stranger.

    `session` is None if the user may not see it.
    """
    if own and session is not None:
        return f"connection {holder} of user {session.user!r} from {session.host!r} holds its lock"
    who = (
        "a user whose connections this user may not see"
        if session is None
        else f"user {session.user!r} from {session.host!r}"
    )
    return (
        f"connection {holder} of {who} holds its lock: if that is no mtsd, somebody holds it on"
        f" purpose; SELECT * FROM information_schema.processlist WHERE id = {holder} shows it to"
        " who has PROCESS"
    )


@understood("target")
async def describe_holder(connection: Connection, lock: str) -> str:
    """Say who holds a lock now. Raises ServerError, ConnectionLostError."""
    ((holder,),) = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock.encode())
    if holder is None:
        return "a connection that has just ended held its lock"
    seen = await sessions(connection)
    id_ = int(str(holder))
    own = is_of_own_account(seen, connection.thread_id, id_)
    return holder_text(id_, seen.get(id_), own=own)
