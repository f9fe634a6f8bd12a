"""XA transactions under rules are refused before anything of them is applied."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.filter.beside_a_replica import Rules, Three
from tests.fix_daemon import NEEDS_PERSON
from tests.replica.xa.xa_of_families import assert_equal, running
from tests.replica.xa.xa_prepared import prepare, prepared
from tests.servers.mariadb import provide_mariadb
from tests.servers.provision import provide

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

REFUSED = "contains an XA transaction, which together with replication filters"
RULES: dict[str, Rules] = {
    "all of it passes": {"do_db": ["a", "b"]},
    "a part passes": {"wild_ignore_table": ["b.%"]},
    "nothing passes": {"ignore_db": ["a", "b"]},
    "of other databases": {"rewrite_db": [["c", "x"]]},
}


@pytest.fixture(scope="module", params=["9.7", "11.8"])
def three(request: pytest.FixtureRequest) -> Iterator[Three]:
    """Three servers, and the source's last transaction is an XA transaction of rows."""
    with Three.running(provide() if request.param == "9.7" else provide_mariadb("11.8")) as three:
        three.make([("a", "INSERT INTO t VALUES (1@, 1)")])
        three.source.sql("SET GLOBAL binlog_format = ROW")
        changes = (f"INSERT INTO {name}.t VALUES (50, 1)" for name in ("a", "b"))
        prepare(three.source, "'x'", *changes)
        yield three


@pytest.mark.parametrize("rules", RULES)
def test_it_stops_the_replica(three: Three, rules: str, tmp_path: Path) -> None:
    *_, gtids = three.source.binlog_end()
    gtid = gtids if three.mariadb else gtids.replace(":1-", ":")
    said = three.refused_by_mtsd(RULES[rules], tmp_path)
    assert said.startswith("group 3, ending at ")
    assert f"GTID {gtid}, {REFUSED}" in said
    assert "Everything before it has been applied" in said
    assert prepared(three.target) == set()
    before = [] if rules == "nothing passes" else [(11,), (12,)]
    assert three.target.sql("SELECT i FROM a.t WHERE i > 4") == before
    assert three.target.sql("SELECT i FROM b.t WHERE i > 4") == []


def test_mysqls_own_replica_stops_where_nothing_is_left_of_it(three: Three) -> None:
    if three.mariadb:
        three.replicate_natively(RULES["nothing passes"])
        assert prepared(three.native) == set()
        return
    with pytest.raises(AssertionError, match="failed executing transaction"):
        three.replicate_natively(RULES["nothing passes"])
    assert three.native.sql(
        "SELECT last_error_number FROM performance_schema.replication_applier_status_by_worker"
    ) == [(3898,)]


@pytest.mark.parametrize("series", ["9.7", "11.8"])
def test_what_was_prepared_before_there_were_rules(series: str, tmp_path: Path) -> None:
    with running(series, series, tmp_path) as (pair, daemon):
        prepare(pair.source, "'x'", "INSERT INTO a.t VALUES (50, 1)")
        assert_equal(pair, daemon)
        assert daemon.stop() == 0
        assert len(prepared(pair.target)) == 1
        pair.source.sql("XA COMMIT 'x'")
        daemon.settings["filter.do_db"] = ["a"]
        daemon.start()
        assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
        assert REFUSED in str(daemon.records()[-1]["error"])
        # It stays prepared, and goes on without rules.
        assert len(prepared(pair.target)) == 1
        del daemon.settings["filter.do_db"]
        daemon.start()
        assert_equal(pair, daemon)
        assert pair.target.sql("SELECT v FROM a.t WHERE id = 50") == [(1,)]
        assert daemon.stop() == 0
