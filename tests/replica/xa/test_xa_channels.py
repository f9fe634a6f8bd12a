"""Two channels on one target whose sources use the same xid."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mtsd.model.fault_points import FaultPoint
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED, command
from tests.replica.daemon_process import DaemonProcess
from tests.replica.xa.xa_prepared import prepare, prepared
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers


@contextmanager
def channels(
    folder: Path, options: Options
) -> Iterator[tuple[Server, Server, Server, DaemonProcess, DaemonProcess]]:
    """Two sources, with databases a and b, the target of both, and their daemons, caught up."""
    with Pair(GTIDS, options) as pair, Server(GTIDS) as other:
        daemons: list[DaemonProcess] = []
        for source, name in ((pair.source, "a"), (other, "b")):
            source.sql(f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)")
            (folder / name).mkdir()
            daemon = DaemonProcess(
                source, pair.target, folder / name,
                {"replica.channel": name, "source.server_id": 4400 + len(daemons)},
            )  # fmt: skip
            daemon.start()
            daemon.wait_until_caught_up()
            daemons.append(daemon)
        one, two = daemons
        try:
            yield pair.source, other, pair.target, one, two
        finally:
            one.close()
            two.close()


def test_a_prepare_in_doubt_is_not_another_channels(tmp_path: Path) -> None:
    """It was never begun; the transaction that is prepared under its xid is the other source's."""
    with channels(tmp_path, NO_GTIDS) as (source, other, target, one, two):
        assert two.stop() == 0
        prepare(other, "'x'", "INSERT INTO b.t VALUES (1, 1)")
        two.start(fault=f"{FaultPoint.AFTER_IN_DOUBT}:1")
        assert two.wait() == SIGKILLED
        prepare(source, "'x'", "INSERT INTO a.t VALUES (1, 1)")
        one.wait_until_caught_up()
        two.start()
        assert two.wait() == NEEDS_PERSON
        assert "XAER_DUPID" in str(two.records()[-1]["error"])
        assert len(prepared(target)) == 1
        source.sql("XA COMMIT 'x'")
        one.wait_until_caught_up()
        two.start()
        other.sql("XA COMMIT 'x'; INSERT INTO b.t VALUES (2, 2)")
        two.wait_until_caught_up()
        assert target.sql("SELECT * FROM a.t") == [(1, 1)]
        assert target.sql("SELECT * FROM b.t") == [(1, 1), (2, 2)]
        assert prepared(target) == set()
        assert one.stop() == two.stop() == 0


@pytest.mark.parametrize("options", [GTIDS, NO_GTIDS], ids=["GTIDs", "none"])
def test_a_completion_does_not_complete_what_is_another_channels(
    options: Options, tmp_path: Path
) -> None:
    with channels(tmp_path, options) as (source, other, target, one, two):
        prepare(source, "'x'", "INSERT INTO a.t VALUES (1, 1)")
        one.wait_until_caught_up()
        assert two.stop() == 0
        prepare(other, "'x'", "INSERT INTO b.t VALUES (1, 1)")
        command(two, "position", "set", "latest", "--forward")
        two.start()
        other.sql("XA COMMIT 'x'")
        assert two.wait() == NEEDS_PERSON
        error = str(two.records()[-1]["error"])
        assert (
            "the transaction X'78',X'',1 that the target has prepared is that of the chan" in error
        )
        assert "the channel 'a'" in error
        assert len(prepared(target)) == 1
        source.sql("XA ROLLBACK 'x'")
        one.wait_until_caught_up()
        assert target.sql("SELECT * FROM a.t") == []
        assert prepared(target) == set()
        assert one.stop() == 0


@pytest.mark.parametrize("options", [GTIDS, NO_GTIDS], ids=["GTIDs", "none"])
def test_a_completion_of_what_a_person_has_skipped_completes_nothing(
    options: Options, tmp_path: Path
) -> None:
    with channels(tmp_path, options) as (source, other, target, one, two):
        prepare(source, "'x'", "INSERT INTO a.t VALUES (1, 1)")
        one.wait_until_caught_up()
        prepare(other, "'x'", "INSERT INTO b.t VALUES (1, 1)")
        assert two.wait() == NEEDS_PERSON
        stopped = "SELECT Group_number FROM mtsd.slave_stopped_group WHERE Channel_name = 'b'"
        number = str(target.sql(stopped)[0][0])
        command(two, "skip", "--group", number, "--reason", "the xid is in use")
        two.start()
        other.sql("XA COMMIT 'x'; INSERT INTO b.t VALUES (2, 1)")
        two.wait_until_caught_up()
        assert len(prepared(target)) == 1
        source.sql("XA COMMIT 'x'")
        one.wait_until_caught_up()
        assert target.sql("SELECT * FROM a.t") == [(1, 1)]
        assert target.sql("SELECT * FROM b.t") == [(2, 1)]
        assert prepared(target) == set()
        assert one.stop() == two.stop() == 0


def test_what_another_channel_has_passed_over_is_not_prepared(tmp_path: Path) -> None:
    """It is on record, so that its completion has nothing to do; one's own has the xid."""
    with channels(tmp_path, NO_GTIDS) as (source, other, target, one, two):
        assert one.stop() == 0
        one.settings["replica.skip_errors"] = [1062]
        one.start()
        target.sql("INSERT INTO a.t VALUES (1, 7)")
        prepare(source, "'x'", "INSERT INTO a.t VALUES (1, 1)")
        one.wait_until_caught_up()
        assert prepared(target) == set()
        assert two.stop() == 0
        prepare(other, "'x'", "INSERT INTO b.t VALUES (1, 1)")
        two.start(fault=f"{FaultPoint.BEFORE_SETTLED}:1")
        assert two.wait() == SIGKILLED
        two.start()
        two.wait_until_caught_up()
        source.sql("XA COMMIT 'x'")
        one.wait_until_caught_up()
        assert len(prepared(target)) == 1
        other.sql("XA COMMIT 'x'")
        two.wait_until_caught_up()
        assert target.sql("SELECT * FROM a.t") == [(1, 7)]
        assert target.sql("SELECT * FROM b.t") == [(1, 1)]
        assert one.stop() == two.stop() == 0
