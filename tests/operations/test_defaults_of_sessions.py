"""Commands against a target that gives its sessions other defaults, or is not to log anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fix_daemon import catch_up, command, json_status
from tests.operations.skipping import REASON, begun, conflict, group_of, passed
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

DEFAULTS = {
    "autocommit": "OFF",
    "completion_type": "2",
    "sql_safe_updates": "ON",
    "sql_select_limit": "1",
    "transaction_isolation": "'SERIALIZABLE'",
    "transaction_read_only": "ON",
}


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair(GTIDS, GTIDS) as pair:
        yield pair


def test_other_defaults(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path)
    status = conflict(pair, daemon)
    before = json_status(daemon)
    assert len(before["workers"]) > 2
    try:
        for name, value in DEFAULTS.items():
            pair.target.sql(f"SET GLOBAL {name} = {value}")
        assert json_status(daemon)["workers"] == before["workers"]
        assert "no group is in doubt" in command(daemon, "resolve")
        command(daemon, "skip", *group_of(status, "group"), *REASON)
        daemon.settings["replica.parallel_workers"] = 1
        catch_up(daemon)
        command(daemon, "position", "set", "latest", "--forward")
        assert "latest" not in command(daemon, "position", "show")
        command(daemon, "position", "reset")
    finally:
        for name in DEFAULTS:
            pair.target.sql(f"SET GLOBAL {name} = DEFAULT")
    passed(pair)


def test_a_target_that_logs_nothing_of_what_is_applied(pair: Pair, tmp_path: Path) -> None:
    daemon = begun(pair, tmp_path, {"target.binary_log": False})
    status = conflict(pair, daemon)
    end = pair.target.binlog_end()
    command(daemon, "skip", *group_of(status, "group"), *REASON)
    command(daemon, "resolve")
    command(daemon, "position", "set", "latest", "--forward")
    command(daemon, "position", "reset")
    # A replica of the target has no such tables.
    assert pair.target.binlog_end() == end
