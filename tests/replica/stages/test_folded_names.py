"""A target that has names in lower case: what is one there is in order, and has one name."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.locks import waiting_session
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import Options
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

LOWER: Options = {"lower_case_table_names": 1}


@contextmanager
def pair_of(source: Options, target: Options) -> Iterator[Pair]:
    installation = provide_mariadb("11.8")
    row: Options = {"binlog_format": "ROW"}
    with Pair(
        {**row, **source}, {**row, **target},
        installation=installation, target_installation=installation,
    ) as pair:  # fmt: skip
        yield pair


@pytest.mark.parametrize("policy", ["database", "table", "row", "commit_parent"])
def test_two_databases_that_are_one(policy: str, tmp_path: Path) -> None:
    with pair_of({}, LOWER) as pair:
        for name in ("shop", "Shop"):
            pair.source.sql(
                f"CREATE DATABASE IF NOT EXISTS {name};"
                f"CREATE TABLE IF NOT EXISTS {name}.t (id INT PRIMARY KEY, v INT);"
                f"CREATE TABLE IF NOT EXISTS {name}.held (id INT PRIMARY KEY)"
            )
        pair.source.sql(
            "INSERT INTO shop.t VALUES (1, 0);SET sql_log_bin = 0; INSERT INTO Shop.t VALUES (1, 0)"
        )
        settings: dict[str, Value] = {"replica.parallel_type": policy}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            with closing(pair.target.client("shop")) as client:
                client.query("BEGIN")
                client.query("INSERT INTO held VALUES (1)")
                pair.source.sql(
                    "BEGIN; INSERT INTO shop.held VALUES (1); UPDATE shop.t SET v = 1; COMMIT"
                )
                waiting_session(pair.target)
                pair.source.sql("UPDATE Shop.t SET v = 2")
                # Nothing tells that it is not applied meanwhile, so a wrong order may go unseen.
                daemon.wait_for_status(lambda now: now.pending_groups >= 2, "nothing waits")
                client.query("ROLLBACK")
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM shop.t") == [(1, 2)]


@pytest.mark.parametrize("policy", ["database", "table"])
def test_databases_that_are_bound_and_pinned_by_other_names(policy: str, tmp_path: Path) -> None:
    """The configuration has the names that the source has, which are not those of the target."""
    with pair_of({}, LOWER) as pair:
        for name in ("Shop", "Stock", "Blog"):
            pair.source.sql(f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY)")
        pins: list[list[str | int]] = [["Blog", 3]]
        settings: dict[str, Value] = {
            "replica.parallel_type": policy,
            "replica.bind": [["Shop", "Stock"]],
            "replica.pin": pins,
        }
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            for row in range(2):
                for name in ("Shop", "Stock", "Blog"):
                    pair.source.sql(f"INSERT INTO {name}.t VALUES ({row})")
                daemon.wait_until_caught_up()
                status = daemon.status()
                assert status is not None
                names = [part.name for part in status.partitions if part.name.startswith("s")]
                assert names == ["shop+stock"]
                assert status.workers[2].groups >= 3
                # The same after a reload, which distributes anew.
                daemon.reload()
                daemon.wait_for_record("configuration reloaded", row + 1)
            assert daemon.stop() == 0


@pytest.mark.parametrize("rule", ["ŞİRKET", "şirket"])
def test_a_rule_for_a_name_in_capitals(rule: str, tmp_path: Path) -> None:
    with pair_of(LOWER, LOWER) as pair:
        pair.source.sql(
            "CREATE DATABASE `ŞİRKET`; CREATE DATABASE other; USE `ŞİRKET`;"
            "CREATE TABLE `MÜŞTERİ` (id INT PRIMARY KEY); INSERT INTO `MÜŞTERİ` VALUES (1);"
            "USE other; CREATE TABLE t (id INT)"
        )
        settings: dict[str, Value] = {"filter.do_db": [rule]}
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert pair.target.sql("SELECT * FROM `şirket`.`müşteri`") == [(1,)]
        assert pair.target.sql("SHOW DATABASES LIKE 'other'") == []


def test_the_position_schema_in_capitals(tmp_path: Path) -> None:
    """The source has a database that is mtsd's own on the target."""
    with pair_of({}, LOWER) as pair:
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            pair.source.sql(
                "CREATE DATABASE MTSD; CREATE TABLE MTSD.x (id INT); INSERT INTO MTSD.x VALUES (1);"
                "SET binlog_format = STATEMENT; INSERT INTO MTSD.x VALUES (2); DROP DATABASE MTSD;"
                "INSERT INTO a.t VALUES (1)"
            )
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert pair.target.sql("SHOW TABLES FROM mtsd LIKE 'x'") == []
        assert pair.target.sql("SELECT * FROM a.t") == [(1,)]
