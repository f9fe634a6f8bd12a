"""KILL QUERY while a session does what belongs to a statement of the source, after it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from pymysql.constants import ER

from mtsd.apply.appliers.making import applier_by_binlog
from mtsd.apply.branches.branches import Branches
from mtsd.apply.position.position_tables import PositionTables
from mtsd.apply.session.session import TargetSession
from mtsd.model.errors import ConnectionLostError, ServerError
from mtsd.model.group import Group
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.model.xa_xid import XaXid
from mtsd.replica.ways.definitions import apply_definition
from mtsd.replica.ways.in_doubt import InDoubtWorker
from mtsd.schedule.done.worker_row import blank_row
from mtsd.wire.exchange import Row
from tests.apply.sessions import open_session, settlements_of
from tests.binlog.building import query
from tests.binlog.transactions import begin, grouped, xid
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server

pytestmark = pytest.mark.servers

TABLES = PositionTables("mtsd", "")
DAEMON = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ROW = blank_row(1, LowWaterMark(0, Position("f.000001", 4), None), 1)
IN_INDIA = b"\x05\x06+05:30"
"""A status variable: the time zone of the statement."""
_DEFINITION = b"ALTER TABLE t ADD INDEX (i), ADD INDEX (i)"


@pytest.fixture(scope="module", params=[GTIDS, NO_GTIDS], ids=["GTIDs", "no GTIDs"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    options: Options = request.param
    with Server(options) as server:
        server.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT, zone VARCHAR(9))")
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        server.sql(TABLES.workers.replace(ROW).decode())
        yield server


class Interrupted:
    """A session of which some runs of statements are interrupted before they do anything.

    Of a packet that is answered in parts, it is the last part.
    """

    def __init__(self, session: TargetSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = session.connection.run
        self._query = session.connection.query
        self._send = session.connection.send
        self._receive = session.connection.receive
        self._sent = b""
        self.runs = 0
        self.beginning = b""
        """With which the statements begin that are interrupted."""
        self.at: set[int] = set()
        """Which of these."""
        monkeypatch.setattr(session.connection, "run", self.run)
        monkeypatch.setattr(session.connection, "query", self.query)
        monkeypatch.setattr(session.connection, "send", self.send)
        monkeypatch.setattr(session.connection, "receive", self.receive)

    async def run(self, statements: bytes, count: int) -> None:
        """As that of a connection."""
        self._look_at(statements)
        await self._run(statements, count)

    async def query(self, statement: str | bytes) -> list[Row]:
        """As that of a connection."""
        self._look_at(statement.encode() if isinstance(statement, str) else statement)
        return await self._query(statement)

    def send(self, statements: bytes) -> None:
        """As that of a connection."""
        self._sent = statements
        self._send(statements)

    async def receive(self, count: int, *, more: bool = False) -> None:
        """As that of a connection."""
        await self._receive(count, more=more)
        _, definition, behind = self._sent.partition(_DEFINITION)
        if definition and not more:
            self._look_at(definition + behind)

    def _look_at(self, statements: bytes) -> None:
        if statements.startswith(self.beginning):
            self.runs += 1
            if self.runs in self.at:
                raise ServerError(ER.QUERY_INTERRUPTED, "70100", "Query execution was interrupted")


@pytest.mark.parametrize("times", [1, 100])
async def test_no_other_statement_runs_in_its_state(
    times: int, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await open_session(server)
    interrupted = Interrupted(session, monkeypatch)
    interrupted.beginning = session.states.returning({}, ())[0]
    # That of the second statement, and the tries that follow at once.
    interrupted.at = set(range(2, 2 + times))
    (group,) = grouped(
        begin(),
        query(b"INSERT INTO t VALUES (1, @@session.time_zone)", database=b"a"),
        query(b"INSERT INTO t VALUES (2, @@session.time_zone)", database=b"a", status=IN_INDIA),
        xid(),
    )
    assert isinstance(group, Group)
    applier = applier_by_binlog(session, TABLES, 1 << 20)
    server.sql("TRUNCATE a.t")
    applied = False
    while not applied:
        with suppress(ServerError):
            try:
                await applier.apply_in_order(group, ROW)
                applied = True
            except ConnectionLostError:
                session = await open_session(server)
                applier = applier_by_binlog(session, TABLES, 1 << 20)
    session.connection.close()
    assert server.sql("SELECT * FROM a.t ORDER BY i") == [(1, "+00:00"), (2, "+05:30")]


@pytest.mark.parametrize("what", ["its state", "warnings", "the way back"])
async def test_a_definition_is_not_run_twice(
    what: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await open_session(server)
    interrupted = Interrupted(session, monkeypatch)
    number, interrupted.beginning = {
        "its state": (2, session.states.returning({}, ())[0]),
        "warnings": (3, b"SHOW WARNINGS"),
        "the way back": (4, _DEFINITION),
    }[what]
    interrupted.at = {1}
    # It has a warning: a second one of the same columns.
    index = query(
        # A default may have to be computed: then it is in a packet of its own.
        _DEFINITION if what == "the way back" else _DEFINITION + b", ALTER zone SET DEFAULT '+'",
        database=b"a",
    )
    (group,) = grouped(index)
    assert isinstance(group, Group)
    applier = applier_by_binlog(session, TABLES, 1 << 20)
    server.sql("DELETE FROM mtsd.slave_in_doubt; DROP TABLE a.t")
    server.sql("CREATE TABLE a.t (i INT, zone VARCHAR(9))")
    owing = settlements_of(applier, ROW)
    applied = False
    while not applied:
        with suppress(ServerError):
            await apply_definition(
                applier, replace(group, number=number), owing, InDoubtWorker(1, DAEMON),
                reached=session.reached,
            )  # fmt: skip
            applied = True
    await owing.settle_owed()
    session.connection.close()
    assert len(server.sql("SHOW INDEX FROM a.t")) == 2
    assert interrupted.runs
    assert server.sql("SELECT * FROM mtsd.slave_in_doubt") == []


async def test_evidence_is_asked_for_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its record would stay, and a second try could not write it."""
    session = await open_session(server)
    interrupted = Interrupted(session, monkeypatch)
    interrupted.beginning = b"SELECT GTID_SUBSET"
    interrupted.at = {1, 3}
    (group,) = grouped(query(b"DROP TABLE missing", database=b"a"))
    assert isinstance(group, Group)
    applier = applier_by_binlog(session, TABLES, 1 << 20)
    server.sql("DELETE FROM mtsd.slave_in_doubt")
    with pytest.raises(ServerError) as raised:
        await apply_definition(
            applier, replace(group, number=4), settlements_of(applier, ROW),
            InDoubtWorker(1, DAEMON),
            reached=session.reached,
        )  # fmt: skip
    session.connection.close()
    assert raised.value.number == ER.BAD_TABLE_ERROR
    assert server.sql("SELECT * FROM mtsd.slave_in_doubt") == []


async def test_a_completed_transaction_is_found_out(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both what comes after XA COMMIT and the question whether it has happened are interrupted."""
    server.sql("XA START 'x'; INSERT INTO a.t VALUES (9, ''); XA END 'x'; XA PREPARE 'x'")
    session = await open_session(server)
    interrupted = Interrupted(session, monkeypatch)
    interrupted.beginning = b"SELECT GTID_SUBSET" if session.traits.gtid_mode else b"XA RECOVER"
    interrupted.at = {1}
    receive = session.connection.receive

    async def receive_all_but_the_end(count: int, *, more: bool = False) -> None:
        monkeypatch.setattr(session.connection, "receive", receive)
        await receive(count, more=more)
        raise ServerError(ER.QUERY_INTERRUPTED, "70100", "Query execution was interrupted")

    monkeypatch.setattr(session.connection, "receive", receive_all_but_the_end)
    gtid = f"{DAEMON}:99" if session.traits.gtid_mode else ""
    await Branches(session, TABLES, session.reached).complete(
        XaXid(1, b"x", b""), gtid, commits=True
    )
    session.connection.close()
    assert server.sql("SELECT COUNT(*) FROM a.t WHERE i = 9") == [(1,)]
