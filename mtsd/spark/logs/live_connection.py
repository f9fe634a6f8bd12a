"""Connections to a live source, to query its state or to receive a dump.

Errors are one line in terms of the options. A source that cannot be reached is retried.
"""

import asyncio
import hashlib
import hmac
import json
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final, TypeVar
from uuid import uuid4

from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import ConnectionLostError, MtsdError, NeedsPersonError, ServerError
from mtsd.spark.options.live_options import LiveOptions
from mtsd.wire.backoff import Backoff
from mtsd.wire.binlog_status import binlog_status
from mtsd.wire.connection import Connection
from mtsd.wire.dump_packets import (
    COM_BINLOG_DUMP,
    COM_REGISTER_SLAVE,
    MARIADB_CAPABILITY,
    dump,
    register,
)
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.failure import BUSY
from mtsd.wire.family import SERVERS
from mtsd.wire.refusal import explained
from mtsd.wire.replica_status import registered_replicas
from mtsd.wire.traits import ServerTraits, read_traits

T = TypeVar("T")

PROGRAM: Final = "mtsd_binlog"
_LISTING_S: Final = 60.0
"""Long enough for a listing of the files that waits while many of them are being purged."""
_NET_WRITE_TIMEOUT_S: Final = 86_400
"""How long the source waits for a task that Spark holds back."""
_NO_REPLICA: Final = 0
"""The server id of a reader that is not a replica; the source ends no other dump because of it."""
_ENCRYPTION_HEADER: Final = 512
"""The header of an encrypted file in bytes, which the offsets of a dump do not count."""
_ID_WAIT_S: Final = 600.0
_ID_PAUSE_S: Final = 0.2
_SECTION: Final = re.compile(r"\[source\] ")


class SourceError(MtsdError):
    """A live source cannot be read; the message says which one, why, and what to do."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """The state of a source: its files, the last of which ends with the last transaction.

    `executed` are the GTIDs of all up to there; "" if they are not known.
    """

    uuid: str
    files: tuple[tuple[str, int], ...]
    executed: str = ""


class LiveSession:
    """A connection to a source, opened on demand and reopened after it was lost."""

    def __init__(self, live: LiveOptions) -> None:
        self._live = live
        self._open: tuple[Connection, ServerTraits] | None = None

    async def state(self, known: LiveState | None = None) -> LiveState:
        """Return the state of the source; `known` is a former one. Raises SourceError."""

        async def attempt() -> LiveState:
            connection, traits = await self._connection()
            async with connection.answering(_LISTING_S):
                return await _state(connection, traits, known)

        return await self._retried(attempt)

    async def rows(self, sql: str) -> list[tuple[str | None, ...]]:
        """Return the rows of a query as text. Raises SourceError."""

        async def attempt() -> list[tuple[str | None, ...]]:
            connection, _ = await self._connection()
            async with connection.answering(_LISTING_S):
                rows = await connection.query(sql)
            return [tuple(None if one is None else _text(one) for one in row) for row in rows]

        return await self._retried(attempt)

    async def _retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        async def once() -> T:
            try:
                return await attempt()
            except BaseException:
                self.close()
                raise

        return await retried(self._live, once)

    async def _connection(self) -> tuple[Connection, ServerTraits]:
        if self._open is None:
            self._open = await _opened(self._live)
        return self._open

    def close(self) -> None:
        """Close the connection."""
        if self._open is not None:
            self._open[0].close()
            self._open = None


def _text(value: str | bytes | float) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


async def retried(live: LiveOptions, attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of the first attempt that does not lose its connection.

    Raises SourceError, eventually also for errors that might be temporary.
    """
    backoff = Backoff()
    deadline = monotonic() + live.retry_seconds
    while True:
        try:
            return await attempt()
        except (ConnectionLostError, ServerError, NeedsPersonError) as error:
            if not may_pass(error) or monotonic() > deadline:
                raise in_options(live, error) from error
            await asyncio.sleep(backoff.next_pause())


def may_pass(error: MtsdError) -> bool:
    """Tell whether retrying may help."""
    return isinstance(error, ConnectionLostError) or (
        isinstance(error, ServerError) and error.number in BUSY
    )


def in_options(live: LiveOptions, error: MtsdError) -> SourceError:
    """Return an error in terms of the options, which have no sections."""
    message = explained(error) if isinstance(error, ServerError) else str(error)
    if isinstance(error, ConnectionLostError):
        message = f"the source {live}: {message} (tried for {live.retry_seconds:g} s)"
    return SourceError(_SECTION.sub("option ", message))


async def _opened(live: LiveOptions) -> tuple[Connection, ServerTraits]:
    connection = await Connection.open(live.endpoint(), program_name=PROGRAM)
    try:
        async with connection.answering():
            traits = await read_traits(connection)
            if not traits.log_bin:
                raise NeedsPersonError(
                    f"the source {live} writes no binary log: start it with log_bin"
                )
            if traits.binlog_in_engine:
                raise NeedsPersonError(
                    f"the binary log of the source {live} is inside a storage engine"
                    " (binlog_storage_engine), which has no files to be read in ranges: read"
                    " another replica's"
                )
    except BaseException:
        connection.close()
        raise
    return connection, traits


async def _state(
    connection: Connection, traits: ServerTraits, known: LiveState | None
) -> LiveState:
    # The end is queried before the list: every file listed before the end's file is complete.
    ((last, end, *_),) = await connection.query(binlog_status(traits.version))
    if known is not None and known.uuid == traits.uuid and known.files[-1] == (last, int(str(end))):
        executed = known.executed
    else:
        last, end, executed = await _end(connection, traits, str(last), int(str(end)))
    files: list[tuple[str, int]] = []
    for name, size, *more in await connection.query(b"SHOW BINARY LOGS"):
        if name == last:
            files.append((str(name), int(str(end))))
            return LiveState(traits.uuid, tuple(files), executed)
        hidden = _ENCRYPTION_HEADER if more == ["Yes"] else 0
        files.append((str(name), int(str(size)) - hidden))
    raise NeedsPersonError(f"the source does not list its own file {_text(last or '')}")


async def _end(
    connection: Connection, traits: ServerTraits, file: str, offset: int
) -> tuple[str, int, str]:
    """Return an end of the log, now or later, and the GTIDs of all up to exactly there, or "".

    The set in SHOW BINARY LOG STATUS may lack transactions that come before its position.
    """
    try:
        if SERVERS[traits.server.flavour].has_domains:
            query = f"SELECT BINLOG_GTID_POS(0x{file.encode().hex()}, {offset})"
            ((found,),) = await connection.query(query)
            return file, offset, _text(found or "")
        if not traits.gtid_mode:
            return file, offset, ""
        ((local,),) = await connection.query("SELECT local FROM performance_schema.log_status")
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return file, offset, ""
    status = json.loads(_text(local or "{}"))
    executed = "".join(str(status["gtid_executed"]).split())
    return str(status["binary_log_file"]), int(status["binary_log_position"]), executed


async def open_dump(live: LiveOptions, file: str, offset: int, uuid: str = "") -> Connection:
    """Return a connection on which the source sends a file, from an event to the file's end.

    Raises ServerError, ConnectionLostError and NeedsPersonError; the latter also if `uuid` is not
    empty and is not the source's server UUID.
    """
    connection, traits = await _opened(live)
    try:
        if uuid and traits.uuid != uuid:
            raise NeedsPersonError(another_server(str(live), uuid, traits.uuid))
        server_id = _NO_REPLICA
        if live.server_ids:
            server_id = await _server_id(connection, traits, live.server_ids)
        async with connection.answering():
            # Older sources know only the first name of each pair; newer ones prefer the second.
            own = str(uuid4()).encode()
            await connection.run(
                b"SET @master_binlog_checksum=@@global.binlog_checksum,"
                b" @source_binlog_checksum=@@global.binlog_checksum,"
                b" @slave_uuid='%b', @replica_uuid='%b', %b;SET @@session.net_write_timeout=%d"
                % (own, own, MARIADB_CAPABILITY, _NET_WRITE_TIMEOUT_S),
                2,
            )
            if server_id:
                request = register(server_id, "", 0)
                await connection.command(COM_REGISTER_SLAVE, request, answer=True)
        request = dump(server_id, file, offset, to_the_end=True)
        await connection.command(COM_BINLOG_DUMP, request, answer=False)
    except BaseException:
        connection.close()
        raise
    return connection


def another_server(address: str, expected: str, actual: str) -> str:
    """Return a one-line message: the positions belong to a server other than the one found."""
    return (
        f"the server at {address} is {actual} now, and positions are those of {expected}: they mean"
        " nothing in the binary log of another server. Connect to the former one, or begin a new"
        " checkpoint with option 'start'"
    )


async def _server_id(
    connection: Connection, traits: ServerTraits, server_ids: Sequence[int]
) -> int:
    """Return an id that no other reader uses while this connection is open.

    A lock on the source reserves it, so readers may run anywhere, and a killed reader's lock is
    released with its connection. Other replicas take no lock, so the source's list of them is used,
    if it may be seen.
    """
    names = id_locks(connection.endpoint, traits.uuid, server_ids)
    deadline = monotonic() + _ID_WAIT_S
    candidates = list(server_ids)
    while True:
        random.shuffle(candidates)
        async with connection.answering():
            for server_id in candidates:
                name = names[server_id]
                ((taken,),) = await connection.query(b"SELECT GET_LOCK('%b', 0)" % name)
                if taken != 1:
                    continue
                listed = await _replica_ids(connection, traits)
                if server_id not in listed and server_id != traits.server_id:
                    return server_id
                await connection.query(b"SELECT RELEASE_LOCK('%b')" % name)
        if monotonic() > deadline:
            async with connection.answering():
                lock = names[candidates[0]]
                ((holder,),) = await connection.query(b"SELECT IS_USED_LOCK('%b')" % lock)
            held = ""
            if holder is not None:
                holder = int(str(holder))
                query = f"SELECT * FROM information_schema.processlist WHERE id = {holder}"
                held = f". Connection {holder} has one of them; {query} shows it to who has PROCESS"
            raise NeedsPersonError(
                f"all {len(candidates)} ids of option server_ids have been in use for"
                f" {_ID_WAIT_S / 60:g} minutes, by other readers or replicas: give more of them, or"
                f" run fewer tasks at a time{held}"
            )
        await asyncio.sleep(_ID_PAUSE_S)


def id_locks(login: Endpoint, uuid: str, server_ids: Sequence[int]) -> dict[int, bytes]:
    """Return the name of each id's lock on the source `uuid`.

    GET_LOCK needs no privilege, and whoever knew a name could hold it: only who knows the password
    does. All readers with the same account have the same names, wherever they run. The names are
    visible to administrators of the source, so guessing is made as slow as with a password's hash.
    """
    salt = f"mtsd_binlog:{uuid}:{login.user}".encode()
    key = hashlib.scrypt(login.password.encode(), salt=salt, n=1 << 14, r=8, p=1, dklen=32)
    digests = {each: hmac.digest(key, b"%d" % each, "sha256").hex() for each in server_ids}
    return {each: b"mtsd_binlog:" + digest[:40].encode() for each, digest in digests.items()}


async def _replica_ids(connection: Connection, traits: ServerTraits) -> set[int]:
    """Return the ids of the replicas that the source lists; none if the user may not see them."""
    try:
        replicas = await registered_replicas(connection, traits.version)
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return set()
    return {replica.server_id for replica in replicas}
