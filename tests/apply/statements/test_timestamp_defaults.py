"""A target whose sessions cannot set explicit_defaults_for_timestamp: MariaDB before MDEV-28632.

There is no package of one: a later server that says it were one stands for it. It would accept the
SET statement that it is not sent.
"""

from pathlib import Path

import pytest

from tests.fix_daemon import replicated, stopped
from tests.servers.mariadb import provide_mariadb
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

EARLY = "10.6.8-MariaDB"
TABLE = "CREATE TABLE a.t (i INT PRIMARY KEY, at TIMESTAMP)"


def early_target(value: str) -> Pair:
    return Pair(
        {"server_id": 1, "binlog_format": "STATEMENT", "explicit_defaults_for_timestamp": "ON"},
        {"server_id": 2, "version": EARLY, "explicit_defaults_for_timestamp": value},
        installation=provide_mariadb("10.11"),
    )


def test_the_same_value_on_both(tmp_path: Path) -> None:
    with early_target("ON") as pair:
        assert str(pair.target.sql("SELECT VERSION()")[0][0]).startswith("10.6.8")
        pair.target.sql("SET GLOBAL general_log = ON, log_output = 'TABLE'")
        pair.source.sql(f"CREATE DATABASE a; {TABLE}; INSERT INTO a.t (i) VALUES (1)")
        replicated(pair, tmp_path)
        assert pair.target.sql("SELECT * FROM a.t") == [(1, None)]
        sent = "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'SET%explicit_def%'"
        assert pair.target.sql(sent) == [(0,)]


def test_another_value_is_refused(tmp_path: Path) -> None:
    with early_target("OFF") as pair:
        pair.source.sql(f"CREATE DATABASE a; {TABLE}")
        said = stopped(pair, tmp_path)
        assert "explicit_defaults_for_timestamp = ON, which no session can set" in said
