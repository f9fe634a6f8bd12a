"""Unique keys that a MariaDB keeps by hashes, in hidden columns that its row events have, too."""

from pathlib import Path

import pytest

from tests.fix_daemon import replicated
from tests.fix_families import families
from tests.load.mariadb import unequal_rows
from tests.replica.daemon_process import Value
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]
CHANGES = (
    "INSERT INTO a.t (i, v, w) VALUES (1, 'a', 'b'), (2, 'c', 'd'), (3, NULL, 'e');"
    "UPDATE a.t SET v = 'b' WHERE i = 1; UPDATE a.t SET v = 'a' WHERE i = 2;"
    "DELETE FROM a.t WHERE i = 3; INSERT INTO a.n VALUES ('x', 1), (NULL, 2), ('y', 3);"
    "UPDATE a.n SET i = 4 WHERE v = 'x'; UPDATE a.n SET v = 'z' WHERE i = 2;"
    "DELETE FROM a.n WHERE v = 'y'"
)


@pytest.mark.parametrize(
    ("source", "target", "metadata", "settings"),
    [
        ("10.11", "11.8", "NO_LOG", {"target.apply_mode": "sql"}),
        ("11.8", "11.8", "FULL", {"target.apply_mode": "sql"}),
        ("11.8", "11.8", "NO_LOG", {"replica.consistency": "eventual"}),
        ("11.8", "9.7", "FULL", {}),
    ],
)
def test_they_are_no_columns_of_the_target(
    source: str, target: str, metadata: str, settings: dict[str, Value], tmp_path: Path
) -> None:
    with families(source, target, {"binlog_row_metadata": metadata}) as pair:
        _create(pair, "" if target == "9.7" else ", UNIQUE (v), UNIQUE (w)")
        pair.source.sql(CHANGES)
        one_by_one = {"replica.parallel_workers": 1} if "replica.consistency" in settings else {}
        replicated(pair, tmp_path, {**settings, **one_by_one})
        assert unequal_rows(pair.source, pair.target) == []


def _create(pair: Pair, on_target: str) -> None:
    for server, unique in ((pair.source, ", UNIQUE (v), UNIQUE (w)"), (pair.target, on_target)):
        server.sql(
            "SET SESSION sql_log_bin = 0; CREATE DATABASE a;"
            f"CREATE TABLE a.t (i INT PRIMARY KEY, v TEXT, w TEXT NOT NULL{unique});"
            f"CREATE TABLE a.n (v TEXT, i INT{unique.partition(', UNIQUE (w)')[0]})"
        )
