"""What a source is asked before it is read from."""

import time
from contextlib import closing
from threading import Thread

import pytest

from mtsd.config.start import Earliest, Latest
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import NOWHERE, Position
from mtsd.source.read_state import parse_owned, read_gtids, read_source_state
from mtsd.source.start import beginning
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.exchange import Row
from mtsd.wire.traits import read_traits
from tests.servers.mysqld import GTIDS, Server

OTHER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
THIRD = "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_owned_gtids_are_read() -> None:
    # As 9.7.4 writes them.
    text = f"{OTHER}:8#12:7#10{OTHER}:blue:11#18:9#16{THIRD}:3#14"
    assert parse_owned(text) == GtidSet.parse(f"{OTHER}:7-8:blue:9:11,{THIRD}:3")
    assert parse_owned("") == GtidSet()


@pytest.mark.servers
async def test_what_is_being_committed_is_not_lost() -> None:
    """It may have been sent: with semi-synchronous replication, seconds before it is executed."""
    with Server(GTIDS) as server:
        server.sql(f"CREATE DATABASE a; SET GLOBAL gtid_purged = '+{OTHER}:1-3'")
        ((executed, purged),) = server.sql("SELECT @@global.gtid_executed, @@global.gtid_purged")
        connection = await Connection.open(
            Endpoint("source", "127.0.0.1", server.port, "", "root", "")
        )
        with closing(server.client()) as one, closing(server.client()) as two, closing(connection):
            for client, gtid in ((one, f"{OTHER}:7"), (two, f"{OTHER}:blue:9")):
                client.cursor().execute(f"SET gtid_next = '{gtid}'")
            for gtids, wanted in zip(
                await read_gtids(connection),
                (f"{executed},{OTHER}:7,{OTHER}:blue:9", purged),
                strict=True,
            ):
                assert gtids == GtidSet.parse(str(wanted))


@pytest.mark.servers
async def test_the_end_is_not_past_what_its_gtids_hold() -> None:
    """What is being committed is in the file already, and not yet executed."""
    with Server(GTIDS) as server:
        server.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT)")
        file, offset, executed = server.binlog_end()
        connection = await Connection.open(
            Endpoint("source", "127.0.0.1", server.port, "", "root", "")
        )
        with closing(connection):
            traits = await read_traits(connection)
            state = await read_source_state(connection, traits, Latest())
            gtids = GtidSet.parse(executed)
            assert state.end == LowWaterMark(0, Position(file, offset), gtids)
            server.sql("SET GLOBAL binlog_group_commit_sync_delay = 1000000")
            thread = Thread(target=lambda: server.sql("INSERT INTO a.t VALUES (1)"))
            thread.start()
            try:
                wait_until_something_commits(server)
                state = await read_source_state(connection, traits, Latest())
            finally:
                thread.join()
            assert state.end == LowWaterMark(0, NOWHERE, gtids)


@pytest.mark.servers
@pytest.mark.parametrize("purged_before", [0, 1, 2])
async def test_what_is_purged_between_two_queries_is_not_passed_over(
    purged_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(GTIDS) as server:
        server.sql("CREATE DATABASE a; FLUSH BINARY LOGS")
        connection = await Connection.open(
            Endpoint("source", "127.0.0.1", server.port, "", "root", "")
        )
        with closing(connection):
            traits = await read_traits(connection)
            query = Connection.query
            asked = 0

            async def purging(self: Connection, text: bytes | str) -> list[Row]:
                nonlocal asked
                if asked == purged_before:
                    server.sql("PURGE BINARY LOGS TO 'binlog.000002'")
                asked += 1
                return await query(self, text)

            monkeypatch.setattr(Connection, "query", purging)
            state = await read_source_state(connection, traits)
        found = beginning(Earliest(), state, allow_partial_history=False)
        assert isinstance(found, Refused) or found.position.file == "binlog.000001"


def wait_until_something_commits(server: Server) -> None:
    while not server.sql("SELECT @@global.gtid_owned")[0][0]:
        time.sleep(0.01)
