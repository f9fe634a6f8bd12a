"""A channel that stops at one group, and what comes of it when that group is skipped."""

from pathlib import Path
from typing import Any

from tests.fix_daemon import NEEDS_PERSON, catch_up, stopped_at
from tests.fix_servers import wait_for
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.pair import Pair

REASON = ("--reason", "the row is ours")
BEGINNING = (
    "CREATE DATABASE a; CREATE DATABASE b;"
    "CREATE TABLE a.t (id INT PRIMARY KEY, v INT); CREATE TABLE b.t (id INT PRIMARY KEY);"
)


def begun(pair: Pair, folder: Path, settings: dict[str, Value] | None = None) -> DaemonProcess:
    """Return the daemon of a channel that has begun, and is stopped."""
    for name in ("a", "b", "mtsd"):
        pair.target.sql(f"DROP DATABASE IF EXISTS {name}")
        if name != "mtsd":
            pair.source.sql(f"DROP DATABASE IF EXISTS {name}")
    pair.source.sql("RESET BINARY LOGS AND GTIDS")
    if pair.target.sql("SELECT @@log_bin, @@gtid_mode") != [(0, "OFF")]:
        pair.target.sql("RESET BINARY LOGS AND GTIDS")
    pair.source.sql(BEGINNING)
    daemon = DaemonProcess(
        pair.source, pair.target, folder, {"target.gtid": "off"} | (settings or {})
    )
    catch_up(daemon)
    return daemon


def conflict(pair: Pair, daemon: DaemonProcess) -> dict[str, Any]:
    """Stop the daemon at a group of rows of `a` while one of `b` behind it is in."""
    pair.target.sql("INSERT INTO a.t VALUES (2, 0)")
    pair.source.sql(
        "INSERT INTO a.t VALUES (1, 1); INSERT INTO a.t VALUES (2, 1), (3, 1);"
        "INSERT INTO b.t VALUES (1); INSERT INTO b.t VALUES (2); INSERT INTO a.t VALUES (4, 1)"
    )
    with pair.target.client() as holder, holder.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM a.t WHERE id = 2 FOR UPDATE")
        daemon.start()
        wait_for(pair.target, "SELECT COUNT(*) FROM b.t", 2)
        holder.rollback()
        assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
    return stopped_at(daemon)


def passed(pair: Pair) -> None:
    """Check what `conflict` comes to when its group is skipped: all others are there once."""
    assert pair.target.sql("SELECT id, v FROM a.t ORDER BY id") == [(1, 1), (2, 0), (4, 1)]
    assert pair.target.sql("SELECT id FROM b.t ORDER BY id") == [(1,), (2,)]
    assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_stopped_group") == [(0,)]


def group_of(status: dict[str, Any], by: str) -> tuple[str, str]:
    """Return the option of `mtsd skip` that names the group of a status by that."""
    end = status["end"]
    known = {
        "group": str(status["number"]),
        "position": f"{end['file']}:{end['pos']}",
        "gtid": str(end["gtid"]).upper(),
    }
    return f"--{by}", known[by]
