"""SHOW REPLICA STATUS is read by name, whatever a version calls its columns."""

import asyncio
import time

import pytest

from mtsd.model.position import Position
from mtsd.model.server import Flavour, ServerVersion
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.exchange import Value
from mtsd.wire.replica_status import (
    RegisteredReplica,
    ReplicaStatus,
    own_channels,
    registered_replica,
    registered_replicas,
    replica_status,
    replica_status_statement,
)
from mtsd.wire.traits import read_traits
from tests.fix_families import mariadbs
from tests.servers.pair import Pair

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
WANTED = ReplicaStatus(
    channel="",
    host="db1",
    port=3306,
    user="repl",
    source_server_id=7,
    source_uuid=UUID,
    receiving=True,
    applying=False,
    received=Position("binlog.000004", 900),
    executed=Position("binlog.000003", 700),
    received_gtids=f"{UUID}:1-9",
    executed_gtids=f"{UUID}:1-7",
    by_gtid=True,
    error="Duplicate entry",
)
OLD: dict[str, Value] = {
    "Slave_IO_State": "Waiting", "Master_Host": "db1", "Master_User": "repl", "Master_Port": 3306,
    "Master_Log_File": "binlog.000004", "Read_Master_Log_Pos": 900, "Relay_Log_File": "relay.02",
    "Relay_Log_Pos": 4, "Relay_Master_Log_File": "binlog.000003", "Slave_IO_Running": "Connecting",
    "Slave_SQL_Running": "No", "Exec_Master_Log_Pos": 700, "Seconds_Behind_Master": None,
    "Last_IO_Error": "", "Last_SQL_Error": "Duplicate entry", "Master_Server_Id": 7,
    "Master_UUID": UUID.upper(), "Retrieved_Gtid_Set": f"{UUID}:1-9",
    "Executed_Gtid_Set": f"{UUID}:1-7", "Auto_Position": 1,
}  # fmt: skip
"""MySQL 5.6, which has no channels."""
NEW: dict[str, Value] = {
    name.replace("Master", "Source").replace("Slave", "Replica"): value
    for name, value in OLD.items()
} | {"Channel_Name": "shop"}
MARIADB: dict[str, Value] = {
    "Connection_name": "shop", "Master_Host": "db1", "Master_User": "repl", "Master_Port": 3306,
    "Master_Log_File": "binlog.000004", "Read_Master_Log_Pos": 900,
    "Relay_Master_Log_File": "binlog.000003", "Slave_IO_Running": "Yes",
    "Slave_SQL_Running": "Yes", "Exec_Master_Log_Pos": 700, "Last_IO_Error": "",
    "Last_SQL_Error": "", "Master_Server_Id": 7, "Using_Gtid": "Slave_Pos",
    "Gtid_IO_Pos": "0-7-12", "Gtid_Slave_Pos": "0-7-10",
}  # fmt: skip


def test_names_of_every_version_are_read() -> None:
    assert replica_status(OLD) == WANTED
    found = replica_status(NEW)
    assert found.channel == "shop"
    assert found.executed == WANTED.executed
    assert (found.source_uuid, found.by_gtid) == (UUID, True)
    other = replica_status(MARIADB)
    assert (other.channel, other.source_uuid, other.receiving, other.applying) == (
        "shop", "", True, True,
    )  # fmt: skip
    assert (other.received_gtids, other.executed_gtids) == ("0-7-12", "0-7-10")
    assert other.by_gtid
    assert not replica_status({**MARIADB, "Using_Gtid": "No"}).by_gtid
    assert not replica_status({**OLD, "Auto_Position": 0, "Slave_IO_Running": "No"}).receiving


def test_replicas_of_every_version_are_read() -> None:
    old: dict[str, Value] = {
        "Server_id": 7,
        "Host": "",
        "Port": 3306,
        "Master_id": 1,
        "Slave_UUID": UUID.upper(),
    }
    shown: dict[str, Value] = {
        "Server_Id": 7, "Host": "", "User": "u", "Password": "p", "Port": 3306, "Source_Id": 1,
        "Replica_UUID": UUID,
    }  # fmt: skip
    assert registered_replica(old) == registered_replica(shown) == RegisteredReplica(7, UUID)
    assert registered_replica({"Server_id": 7, "Host": ""}) == RegisteredReplica(7, "")


def test_the_statement_is_that_of_the_version() -> None:
    def statement(flavour: Flavour, *number: int) -> str:
        return replica_status_statement(ServerVersion(flavour, (number[0], number[1], number[2])))

    assert statement(Flavour.MYSQL, 8, 0, 21) == "SHOW SLAVE STATUS"
    assert statement(Flavour.MYSQL, 8, 0, 22) == "SHOW REPLICA STATUS"
    assert statement(Flavour.MARIADB, 11, 8, 1) == "SHOW ALL SLAVES STATUS"


@pytest.mark.servers
async def test_a_servers_own_replica_is_read() -> None:
    with Pair() as pair:
        pair.target.sql(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_USER='root',"
            f" SOURCE_PORT={pair.source.port}, GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION=1"
            " FOR CHANNEL 'shop'; START REPLICA"
        )
        deadline = time.monotonic() + 120
        target = await Connection.open(
            Endpoint("target", "127.0.0.1", pair.target.port, "", "root", "")
        )
        source = await Connection.open(
            Endpoint("source", "127.0.0.1", pair.source.port, "", "root", "")
        )
        server = (await read_traits(target)).server
        ((uuid,),) = pair.source.sql("SELECT @@server_uuid")
        while True:
            (channel,) = await own_channels(target, server)
            known = await registered_replicas(source, server.mysql)
            if channel.source_uuid == uuid and channel.applying and known:
                break
            assert time.monotonic() < deadline, channel
            await asyncio.sleep(0.1)
        target.close()
        source.close()
        assert (channel.channel, channel.host, channel.port) == (
            "shop", "127.0.0.1", pair.source.port,
        )  # fmt: skip
        assert (channel.user, channel.receiving, channel.by_gtid) == ("root", True, True)
        assert channel.source_server_id == pair.source.port
        ((target_uuid,),) = pair.target.sql("SELECT @@server_uuid")
        assert known == [RegisteredReplica(pair.target.port, target_uuid)]


@pytest.mark.servers
async def test_what_a_mariadb_writes_itself_is_not_what_its_replica_has_applied() -> None:
    """SHOW ALL SLAVES STATUS has the higher of both numbers in a domain that they share."""
    with mariadbs("11.8") as pair:
        pair.source.sql("CREATE DATABASE a")
        pair.target.sql(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={pair.source.port},"
            " MASTER_USER='root', MASTER_USE_GTID=slave_pos; START SLAVE"
        )
        ((goal,),) = pair.source.sql("SELECT @@gtid_binlog_pos")
        assert pair.target.sql(f"SELECT MASTER_GTID_WAIT('{goal}', 60)") == [(0,)]
        pair.target.sql("STOP SLAVE")
        for name in ("b", "c"):
            pair.target.sql(f"CREATE DATABASE {name}")
        endpoint = Endpoint("target", "127.0.0.1", pair.target.port, "", "root", "")
        target = await Connection.open(endpoint)
        (channel,) = await own_channels(target, (await read_traits(target)).server)
        target.close()
        assert channel.executed_gtids == goal
