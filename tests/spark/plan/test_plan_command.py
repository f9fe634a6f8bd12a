import json
import re
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mtsd.cli import plan
from mtsd.cli.main import main
from mtsd.model.parallel_type import BY_THE_SOURCE
from mtsd.plan.calibration import Point
from mtsd.plan.candidate import Candidate
from mtsd.plan.points import points_json
from mtsd.schedule.policies.choice import POLICIES
from mtsd.spark.plan import replay
from tests.load import small
from tests.servers.mysqld import Server

# What is interrupted in the middle of an answer leaves the JVM of all later tests out of step.
pytestmark = pytest.mark.timeout(900)

POINTS = [
    Point(Candidate("database", 1, 1), 30_000, 30_000, 20.0, 3.0, 12.0),
    Point(Candidate("database", 1, 512), 400_000, 800, 20.0, 5.0, 16.0),
    Point(Candidate("database", 4, 1), 80_000, 80_000, 20.0, 8.0, 30.0),
]


@pytest.fixture(scope="module")
def binlogs(server: Server, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return two files of small transactions, some of which update two databases."""
    small.prepare(server, 4)
    server.sql("RESET BINARY LOGS AND GTIDS")
    small.fill(server, 400, 4, seed=302)
    server.sql("FLUSH BINARY LOGS")
    for number in range(40):
        server.sql(
            f"BEGIN; INSERT INTO small0.ticks VALUES ({number}, 0, '');"
            f" INSERT INTO small1.ticks VALUES ({number}, 0, ''); COMMIT"
        )
    server.sql("FLUSH BINARY LOGS")
    folder = tmp_path_factory.mktemp("plan")
    paths = [folder / name for name in ("binlog.000001", "binlog.000002")]
    for path in paths:
        path.write_bytes((server.datadir / path.name).read_bytes())
    return paths


def planned(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["plan", *map(str, arguments)])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_a_recorded_load_is_planned(
    spark: SparkSession,
    binlogs: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # To find the costs takes as long as this is; a plan that is in a hurry is less exact.
    monkeypatch.setattr(plan, "_SAMPLE", 3_000)
    monkeypatch.setattr(replay, "LEAST", 2_000)
    points = tmp_path / "points.json"
    points.write_text(points_json(POINTS))
    record, html, plots = tmp_path / "load.parquet", tmp_path / "plan.html", tmp_path / "plots"
    code, out, err = planned(
        capsys, *binlogs, "--record", record, "--points", points, "--workers", "1,2",
        "--batches", "1,64", "--processors", 2, "--html", html, "--plots", plots, "--json",
    )  # fmt: skip
    assert code == 0, err
    document = json.loads(out)
    load = document["load"]
    assert load["several"] == 40
    assert [(one["first"], one["second"]) for one in load["together"]] == [("small0", "small1")]
    results = document["results"]
    assert {one["parallel_type"] for one in results} == set(POLICIES) - {"row"}
    assert {one["parallel_workers"] for one in results} == {1, 2}
    # With and without the bind that the load suggests.
    assert {json.dumps(one["bind"]) for one in results} == {"[]", '[["small0", "small1"]]'}
    assert len(results) == 2 + 2 * (2 * (len(POLICIES) - 1) - len(BY_THE_SOURCE))
    best = document["recommended"]
    assert best["replica"]["batch_groups"] == 64
    assert best["rate"] >= 0.95 * max(one["rate"] for one in results)
    assert [fit["measured"] for fit in document["calibration"]] == [1500, 20000, 4000]
    assert abs(document["calibration"][0]["off"]) < 0.05
    assert "recorded 4" in err
    assert "simulating" in err
    page = html.read_text()
    assert page.count("data:image/png;base64,") == 4
    # The page loads nothing; what an image happens to spell in base64 says nothing of that.
    assert "http" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", page)
    names = {path.name for path in plots.iterdir()}
    assert names == {"throughput.png", "speed_up.png", "load.png", "calibration.png"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in plots.iterdir())

    # Now that the record exists, nothing else is needed, and it is not written again.
    written = record.stat().st_mtime_ns
    settings = tmp_path / "eventual.toml"
    settings.write_text('[replica]\nconsistency = "eventual"\n')
    code, out, err = planned(
        capsys, "--record", record, "--workers", "2", "--batches", "64", "--groups", "100",
        "--config", settings,
    )  # fmt: skip
    assert code == 0, err
    assert 'not simulated: consistency = "eventual"' in out
    assert record.stat().st_mtime_ns == written
    assert "[replica]" in out
    assert "batch_groups = 64" in out
    assert "100 transactions" in out
    assert "only ratios mean something" in out
    assert SparkSession.getActiveSession() is spark


@pytest.mark.parametrize(
    ("arguments", "status", "why"),
    [
        ([], 2, "name a FILE, the source with --config, or a --record that is there"),
        (["no-such-file"], 2, "there is no binary log file no-such-file on this machine"),
        ([__file__], 3, "not a binary log: it does not begin with the magic number"),
        (["--measure", "5", __file__], 2, "--measure needs --config"),
        (["--points", __file__, __file__], 2, "it has no points, and is no status of a daemon"),
        (["--points", sys.executable, __file__], 2, "it is no text in UTF-8"),
        (["--html", "no/such/x.html", __file__], 2, "x.html cannot be written: there is no folder"),
        (["--plots", __file__, __file__], 2, "test_plan_command.py is no folder"),
        (["--record", __file__], 3, "is not a record of groups: it is no Parquet file"),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_line(
    arguments: list[str], status: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = planned(capsys, *arguments)
    assert code == status
    assert not out
    assert why in err.splitlines()[-1]
    assert "Traceback" not in err


@pytest.mark.parametrize("package", ["pyarrow", "pyspark"])
def test_a_missing_extra_is_said(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith(("mtsd.spark.", f"{package}."))]:
        monkeypatch.delitem(sys.modules, name)
    code, _, err = planned(capsys, __file__)
    assert code == 2
    assert err == (
        f"mtsd: error: mtsd plan needs {package}: install mtsd with its extra 'plan'"
        " (pip install '.[plan]')\n"
    )


def test_no_java_is_said(
    binlogs: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    code, out, err = planned(capsys, *binlogs)
    assert (code, out) == (3, "")
    assert err.splitlines()[-1] == (
        "mtsd: error: JAVA_HOME=/nowhere has no bin/java: set it to a Java 17 or 21"
    )
