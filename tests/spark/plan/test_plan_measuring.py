"""`mtsd plan --measure`: the daemon itself, on real servers."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mtsd.cli.backlog_size import backlog_size
from mtsd.cli.main import main
from mtsd.config import load
from tests.load import small
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


def configured(pair: Pair, folder: Path) -> DaemonProcess:
    daemon = DaemonProcess(pair.source, pair.target, folder)
    del daemon.settings["target.port"]
    daemon.settings["target.unix_socket"] = str(pair.target.socket)
    daemon.settings["replica.parallel_workers"] = 2
    daemon.configure()
    return daemon


def test_a_replica_that_has_nothing_to_do_cannot_be_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Pair() as pair:
        small.prepare(pair.source, 2)
        small.fill(pair.source, 50, 2)
        daemon = configured(pair, tmp_path)
        # Of which there is only one while it is measured.
        pins: list[list[str | int]] = [["s0", 3]]
        daemon.settings |= {"replica.parallel_workers": 4, "replica.pin": pins}
        daemon.configure()
        config = daemon.config
        assert main(["plan", "--config", str(config), "--measure", "5"]) == 3
        found = capsys.readouterr()
        assert "caught up within" in found.err.splitlines()[-1]
        assert "measuring needs a longer backlog, or a shorter time" in found.err
        assert "how many transactions the backlog has is not known; with typical" in found.err
        # It has replicated, and stopped in the usual way.
        assert differences(pair.source, pair.target) == []
        assert "measuring for 5 s: database, 1 workers, batches of 1" in found.err
        settings = load(config).settings
        assert backlog_size(settings) == 0
        small.fill(pair.source, 50, 2, seed=2)
        assert 5_000 < (backlog_size(settings) or 0) < 50_000


def test_a_daemon_that_ends_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Pair() as pair:
        daemon = configured(pair, tmp_path)
        pair.source.sql("CREATE DATABASE a")
        daemon.settings["target.user"] = "nobody"
        daemon.configure()
        assert main(["plan", "--config", str(daemon.config), "--measure", "1"]) == 3
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("mtsd: error: the daemon ended: ")
        assert "nobody" in last


@pytest.mark.long
def test_three_points_of_a_live_load(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Pair() as pair:
        small.prepare(pair.source, 4)
        small.fill(pair.source, 120_000, 4)
        daemon = configured(pair, tmp_path)
        points = tmp_path / "points.json"
        code = main([
            "plan", "--config", str(daemon.config), "--measure", "1.5", "--points", str(points),
            "--workers", "1,2", "--batches", "1,512", "--json",
        ])  # fmt: skip
        found = capsys.readouterr()
        assert code == 0, found.err
        document = json.loads(found.out)
        measured = [
            (fit["parallel_workers"], fit["batch_groups"]) for fit in document["calibration"]
        ]
        assert measured == [(1, 1), (2, 1), (1, 512)]
        one, several, combined = (fit["measured"] for fit in document["calibration"])
        assert combined > 2 * one
        assert several > one
        # On the same machine and over a Unix socket, the target's processor time is known.
        assert all(one["target"] > 0 for one in json.loads(points.read_text())["points"])
        assert document["load"]["number_of_databases"] == 4
        assert document["recommended"]["replica"]["batch_groups"] == 512
        with daemon:
            daemon.wait_until_caught_up()
            daemon.stop()
        assert differences(pair.source, pair.target) == []
        assert SparkSession.getActiveSession() is spark
