"""Take-over and hand-over ten times in a row, killed each time, with a replica of the target."""

import re
from pathlib import Path

import pytest

from mtsd.wire.replica_words import MARIADB_REPLICA, MYSQL_REPLICA
from tests.fix_daemon import catch_up
from tests.fix_families import mariadbs
from tests.operations.move.application import ACCOUNT, Application, killed_at, wait_until
from tests.operations.move.moving import ROWS, SHOP, follow, move, replicate, wait_for_as_many
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900)]

TIMES = 10
MARIADB: Options = {"binlog_row_metadata": "FULL", "log_slave_updates": "ON"}
TOLD = re.compile(r"(SET GLOBAL gtid_purged = CONCAT\(.*\))$", re.MULTILINE)


def killed(verb: str, at: str, daemon: DaemonProcess) -> str:
    """Carry a move out that is killed once, and again if need be; return what both have said."""
    target = daemon.target
    more = ("--watch", "0.1") if verb == "handover" else ()
    given = ("--execute", "--admin-user", "root", "--config", str(daemon.config))
    killed_at(at, daemon.folder, verb, *given, *more)
    said = (daemon.folder / "begun.txt").read_text(encoding="utf-8")
    if not is_done(verb, target):
        said += move(daemon, verb, *more)
    assert is_done(verb, target), said
    return said


def is_done(verb: str, target: Server) -> bool:
    """Return whether the own replica of the target is gone, or runs."""
    rows = target.sql("SHOW REPLICA STATUS")
    # One that is configured and not started says so of TLS, too.
    return not rows if verb == "takeover" else bool(rows) and rows[0].count("Yes") > 1


@pytest.mark.parametrize("kind", ["gtids", "files", "mariadb"])
def test_with_a_replica_behind_the_target(tmp_path: Path, kind: str) -> None:
    if kind == "mariadb":
        words, place = MARIADB_REPLICA, "MASTER_USE_GTID = slave_pos"
        pair = mariadbs("11.8", options=MARIADB, target_options={**MARIADB, "gtid_domain_id": 2})
    else:
        words, place = MYSQL_REPLICA, f"SOURCE_AUTO_POSITION = {int(kind == 'gtids')}"
        pair = Pair(*([GTIDS if kind == "gtids" else NO_GTIDS] * 2))
    behind = Server({**pair.target.options, "server_id": 3}, installation=pair.target.installation)
    acts = {
        "takeover": (words.stop(""), "sets the position", words.forget(""), "compares"),
        "handover": ("who applies", "reads it back", words.changes, words.start("")),
    }
    with pair, behind:
        source, target = pair.source, pair.target
        # The account comes to all by replication.
        replicate(source, target, words, place)
        wait_until(lambda: target.sql("SELECT 1 FROM mysql.user WHERE user = 'repl'") == [(1,)])
        follow(target, behind, words, place)
        source.sql(f"{SHOP}; {ACCOUNT}")
        daemon = DaemonProcess(source, target, tmp_path)
        daemon.configure()
        with Application(source) as application:
            for number in range(TIMES):
                application.wait_for(5)
                killed("takeover", acts["takeover"][number % 4], daemon)
                catch_up(daemon)
                application.wait_for(5)
                said = killed("handover", acts["handover"][number % 4], daemon)
                assert bool(TOLD.search(said)) == (kind == "gtids"), said
                for statement in TOLD.findall(said):
                    behind.sql(f"{words.stop('')}; {statement}; {words.start('')}")
        # At its next connection it says what it lacks.
        behind.sql(f"{words.stop('')}; {words.start('')}")
        source.sql("INSERT INTO shop.orders (what) VALUES ('after its next connection')")
        for server in (target, behind):
            wait_for_as_many(source, server)
            assert server.sql(ROWS) == source.sql(ROWS)
        assert {what for _, what in source.sql(ROWS)} >= application.acknowledged
        pair.discard()
        behind.discard()
