"""Channels with databases of their own share a MariaDB source, in every format."""

from pathlib import Path

import pytest

from tests.load.equality import unequal
from tests.replica.test_families import families
from tests.replica.test_one_channel import of_their_own
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

SHARED = {
    "ROW": "BEGIN; INSERT INTO a.t VALUES (900, 0); INSERT INTO b.t VALUES (900, 0); COMMIT",
    # What a statement changes is in another database than that it runs in, or in both.
    "STATEMENT": "USE a; BEGIN; INSERT INTO t VALUES (900, 0); USE b;"
    " INSERT INTO t VALUES (900, 0); COMMIT",
}


def change(pair: Pair, first: int) -> None:
    """Change both databases by turns."""
    for number in range(first, first + 20):
        for database in ("a", "b"):
            pair.source.sql(
                f"INSERT INTO t VALUES ({number}, 0); UPDATE t SET v = v + 1 WHERE id > {first};"
                f"BEGIN; INSERT INTO u VALUES ({number}, 1); DELETE FROM t WHERE id = {first};"
                "COMMIT",
                database,
            )


@pytest.mark.parametrize("binlog_format", SHARED)
@pytest.mark.parametrize("target", ["11.8", "9.7"])
def test_both_reach_the_end_and_stop_at_what_is_shared(
    target: str, binlog_format: str, tmp_path: Path
) -> None:
    with families("11.8", target, {"binlog_format": binlog_format}) as pair:
        for database in ("a", "b"):
            pair.source.sql(f"CREATE DATABASE {database} COLLATE utf8mb4_general_ci")
            pair.source.sql(
                "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE u LIKE t", database
            )
        change(pair, 100)
        one, two = of_their_own(pair, tmp_path)
        with one, two:
            for each in (one, two):
                each.wait_until_caught_up()
            # Each learns of the other at its start, and they have started at the same time.
            for each in (one, two):
                assert each.stop() == 0
                each.start()
                each.wait_until_running()
            change(pair, 200)
            for each in (one, two):
                each.wait_until_caught_up()
            assert unequal(pair.source, pair.target) == []
            pair.source.sql(SHARED[binlog_format])
            ((gtid,),) = pair.source.sql("SELECT @@gtid_binlog_pos")
            for each, other in ((one, "two"), (two, "one")):
                assert each.wait() == 3, each.last_words()
                assert f"others for channel '{other}'" in each.last_words()
                assert str(gtid) in each.last_words()
        for database in ("a", "b"):
            assert pair.target.sql("SELECT COUNT(*) FROM t WHERE id = 900", database) == [(0,)]
