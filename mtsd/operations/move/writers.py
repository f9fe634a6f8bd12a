"""Who writes to the server that is to be read only, and what of it would be cut off."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ServerError
from mtsd.operations.move.accounts import Privilege
from mtsd.operations.move.admin import AdminSession
from mtsd.operations.move.own_settings import Difference
from mtsd.wire.exchange import Value
from mtsd.wire.replica_words import sql_text

_DEFINES: Final = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*(?:ALTER|CREATE|DROP|RENAME|TRUNCATE|OPTIMIZE|REPAIR)\b",
    re.IGNORECASE | re.DOTALL,
)
_OF_SERVER: Final = frozenset({"system user", "event_scheduler"})
_RUNS: Final = frozenset({"Query", "Execute"})
_IGNORE_READ_ONLY: Final = frozenset({
    "SUPER", "CONNECTION_ADMIN", "READ_ONLY ADMIN", "ALL PRIVILEGES",
})  # fmt: skip
IGNORES_READ_ONLY: Final = "ignores_read_only"
"""The name by which sessions are accepted that may write although a server is read only."""
_SHOWN: Final = 3
_TEXT: Final = 60


@dataclass(frozen=True, slots=True)
class ServerSession:
    """A session of somebody: what it runs, "" if nothing, and for how many seconds."""

    id: int
    user: str
    statement: str
    seconds: int

    def __str__(self) -> str:
        what = self.statement[:_TEXT] or "a transaction that is open"
        return f"{self.user}, session {self.id}, for {self.seconds} s: {what}"


@dataclass(frozen=True, slots=True)
class Writers:
    """The sessions of a server, without those of the server itself and of this command."""

    sessions: tuple[ServerSession, ...]
    changing: frozenset[int]
    """Ids of those with a transaction that has changed rows."""
    prepared: int | None
    """How many XA transactions are prepared; None if the admin may not list them."""

    @property
    def open(self) -> tuple[ServerSession, ...]:
        """Those with a transaction that has changed rows, and is not yet over."""
        return tuple(each for each in self.sessions if each.id in self.changing)

    def running_for(self, seconds: float) -> tuple[ServerSession, ...]:
        """Return those that run a statement, or such a transaction, for that long."""
        return tuple(
            each
            for each in self.sessions
            if each.seconds >= seconds and (each.statement or each.id in self.changing)
        )


def sessions_of(rows: Sequence[Mapping[str, Value]], own: frozenset[int]) -> list[ServerSession]:
    """Parse the rows of SHOW FULL PROCESSLIST, without the sessions with `own` ids."""
    found = []
    for row in rows:
        session = ServerSession(
            int(str(row["Id"])),
            str(row["User"]),
            str(row["Info"] or "") if str(row["Command"]) in _RUNS else "",
            int(str(row["Time"] or 0)),
        )
        dumps = str(row["Command"]).startswith("Binlog Dump")
        if session.user not in _OF_SERVER and session.id not in own and not dumps:
            found.append(session)
    return found


def cut_off(writers: Writers, longest: float) -> list[Difference]:
    """Return what would be cut off, or last longer than `longest` seconds."""
    found = []
    if long := writers.running_for(longest):
        shown = "; ".join(map(str, long[:_SHOWN]))
        found.append(
            Difference("long_writers", f"{len(long)} sessions run for long on the source: {shown}")
        )
    defining = [each for each in writers.sessions if _DEFINES.match(each.statement)]
    if defining:
        shown = "; ".join(map(str, defining[:_SHOWN]))
        found.append(Difference("definitions", f"definitions run on the source: {shown}"))
    if writers.prepared:
        found.append(
            Difference(
                "prepared_on_source",
                f"{writers.prepared} XA transactions are prepared on the source: nobody can commit"
                " them there once it is read only",
            )
        )
    return found


def may_ignore_read_only(privileges: Iterable[Privilege]) -> bool:
    """Return whether an account with them writes to a server that is read only."""
    return any(name in _IGNORE_READ_ONLY for name, _ in privileges)


def privileged(accounts: Mapping[str, Iterable[Privilege]]) -> frozenset[str]:
    """Return the users, quoted, who may write to a server that is read only.

    A session does not say which of the accounts of its user's name it has.
    """
    return frozenset(
        account.rpartition("@")[0]
        for account, privileges in accounts.items()
        if may_ignore_read_only(privileges)
    )


def unstoppable(sessions: Iterable[ServerSession], users: Collection[str]) -> list[Difference]:
    """Return who could go on writing: sessions of `users`, who are quoted (see `privileged`)."""
    found = [each for each in sessions if sql_text(each.user) in users]
    if not found:
        return []
    shown = ", ".join(f"{each.user} (session {each.id})" for each in found[:_SHOWN])
    return [
        Difference(
            IGNORES_READ_ONLY,
            f"{len(found)} sessions on the source may write although it is read only: {shown};"
            " take CONNECTION_ADMIN, READ_ONLY ADMIN and SUPER from them, or end them",
        )
    ]


async def read_sessions(session: AdminSession) -> list[ServerSession]:
    """Query the sessions of a server, without this one. Raises ServerError, ConnectionLostError."""
    rows = await session.named("SHOW FULL PROCESSLIST")
    ((own,),) = await session.query("SELECT CONNECTION_ID()")
    return sessions_of(rows, frozenset({int(str(own))}))


async def read_writers(session: AdminSession) -> Writers:
    """Query a server. Raises ServerError, ConnectionLostError."""
    sessions = await read_sessions(session)
    changing = await session.query(
        "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE trx_rows_modified > 0"
    )
    prepared: int | None = None
    try:
        prepared = len(await session.query("XA RECOVER"))
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
    return Writers(
        tuple(sessions),
        frozenset(int(str(id_)) for (id_,) in changing),
        prepared,
    )
