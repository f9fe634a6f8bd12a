"""Sessions are as mtsd needs them, whatever the server's defaults and its init_connect say."""

from collections.abc import Iterator

import pytest

from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.model.errors import ServerError
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.neutral_session import make_neutral
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module", params=["MySQL", "MariaDB"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    mysql = request.param == "MySQL"
    with Server(installation=None if mysql else provide_mariadb("11.8")) as server:
        # init_connect is not run for administrators.
        administers = "SUPER, CONNECTION_ADMIN" if mysql else "SUPER, CONNECTION ADMIN"
        server.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (i INT PRIMARY KEY); INSERT INTO a.t VALUES (1);"
            "CREATE TABLE a.m (i INT) ENGINE = MyISAM; INSERT INTO a.m VALUES (1), (1);"
            "CREATE USER u@localhost; GRANT ALL ON *.* TO u@localhost;"
            f"REVOKE {administers} ON *.* FROM u@localhost"
        )
        yield server


def endpoint(server: Server) -> Endpoint:
    return Endpoint("target", "", 0, str(server.socket), "u", "")


@pytest.mark.parametrize(
    "init",
    [
        "SET character_set_results = utf16",
        "SET character_set_results = NULL",
        "BEGIN",
        "START TRANSACTION READ ONLY",
        "SET autocommit = 0, completion_type = 2",
        "LOCK TABLES a.t READ",
        "SET sql_log_bin = 0",
        "SET sql_select_limit = 0",
        "SET max_join_size = 1",
    ],
)
async def test_init_connect(server: Server, init: str) -> None:
    server.sql(f"SET GLOBAL init_connect = '{init}'")
    try:
        session = await TargetSession.open(endpoint(server), SessionSettings(binary_log=True))
    finally:
        server.sql("SET GLOBAL init_connect = ''")
    connection = session.connection
    assert await connection.query("SELECT @@session.sql_log_bin, 'ä'") == [(1, "ä")]
    assert await connection.query("SELECT COUNT(*) FROM a.m a, a.m b") == [(4,)]
    file, offset = await session.log_position()
    await connection.run(b"BEGIN; INSERT INTO a.m VALUES (1); COMMIT", 3)
    assert await session.log_position() > (file, offset)
    await connection.run(b"TRUNCATE a.m; INSERT INTO a.m VALUES (1), (1)", 2)
    await connection.quit()


async def test_init_connect_of_one_family(server: Server) -> None:
    """BINLOG passes over nothing, and no replica of the target passes over what mtsd does."""
    mariadb = server.installation.binlog_reset == "RESET MASTER"
    name, init, wanted = (
        ("skip_replication", "1", 0) if mariadb else ("rbr_exec_mode", "IDEMPOTENT", "STRICT")
    )
    server.sql(f"SET GLOBAL init_connect = 'SET {name} = {init}'")
    try:
        session = await TargetSession.open(endpoint(server), SessionSettings(binary_log=True))
    finally:
        server.sql("SET GLOBAL init_connect = ''")
    assert await session.connection.query(f"SELECT @@session.{name}") == [(wanted,)]
    await session.connection.quit()


async def test_limits_of_time_and_joins(server: Server) -> None:
    """Also where nothing is pinned, and of what waits for a lock."""
    mariadb = server.installation.binlog_reset == "RESET MASTER"
    name = "max_statement_time" if mariadb else "max_execution_time"
    server.sql(f"SET GLOBAL {name} = 1, GLOBAL max_join_size = 1")
    try:
        connection = await Connection.open(endpoint(server))
        await make_neutral(connection)
        waits = "SELECT SLEEP(1.2) FROM a.m, a.m b LIMIT 1"
        assert await connection.query(waits) == [(0,)]
        await connection.quit()
    finally:
        server.sql(f"SET GLOBAL {name} = 0, GLOBAL max_join_size = DEFAULT")


async def test_changes_that_remain_are_seen(server: Server) -> None:
    server.sql("SET GLOBAL max_error_count = 0, GLOBAL sql_notes = OFF")
    try:
        session = await TargetSession.open(endpoint(server), SessionSettings(binary_log=True))
    finally:
        server.sql("SET GLOBAL max_error_count = DEFAULT, GLOBAL sql_notes = DEFAULT")
    statements = b"BEGIN; INSERT INTO a.m VALUES (2); INSERT INTO a.t VALUES (1)"
    with pytest.raises(ServerError, match="1062") as raised:
        await session.connection.run(statements, 3)
    await session.undo(raised.value)
    assert raised.value.leaves_changes
    await session.connection.quit()
