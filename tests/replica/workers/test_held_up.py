"""A lock that somebody has on the target: the daemon says what it waits for, and whose that is."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from mtsd.apply.position.signs_of_life import Session
from mtsd.control.status import Status
from mtsd.replica.workers.held_up import why
from tests.fix_families import families
from tests.fix_servers import run, wait_until_stuck
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

_TABLE = (
    "CREATE DATABASE a",
    "CREATE TABLE a.t (id INT PRIMARY KEY, v INT)",
    "INSERT INTO a.t VALUES (1, 1)",
)
_LOCK = "Waiting for table metadata lock"
_NOBODY = "a prepared transaction (XA RECOVER lists it) or the server itself"


def _session(number: int, state: str = "", statement: str = "", user: str = "app") -> Session:
    command = "Query" if state or statement else "Sleep"
    return Session(number, command, 15, state, statement, user, "db1:45240")


_SEEN = {
    each.id: each
    for each in (
        _session(12, _LOCK, "BINLOG '…'", "mtsd"),
        _session(13, "Waiting for handler commit", "COMMIT", "mtsd"),
        _session(14, "altering table", "ALTER TABLE t ADD v INT", "mtsd"),
        _session(15, user="mtsd"),
        _session(16, "Waiting for someone to free space", "COMMIT", "mtsd"),
        _session(17, "Waiting for disk space", "COMMIT", "mtsd"),
        _session(18),
        _session(20, _LOCK, "ALTER TABLE t ADD w INT"),
    )
}


@pytest.mark.parametrize(
    ("session", "waits", "said"),
    [
        (
            12, {(12, 18)},
            (
                f"{_LOCK}, held up by connection 18 of user 'app' from 'db1', idle for 15 s:"
                " wait until that ends, or KILL 18 there"
            ),
        ),
        (
            12, {(12, 20)},
            (
                f"{_LOCK}, held up by connection 20 of user 'app' from 'db1', at ALTER TABLE for"
                " 15 s: wait until that ends, or KILL 20 there"
            ),
        ),
        # Whoever waits itself is not to blame.
        (
            12, {(12, 20), (20, 18)},
            (
                f"{_LOCK}, held up by connection 18 of user 'app' from 'db1', idle for 15 s:"
                " wait until that ends, or KILL 18 there"
            ),
        ),
        (12, {(12, 0)}, f"{_LOCK}, held up by {_NOBODY}"),
        (
            12, {(12, 99)},
            f"{_LOCK}, held up by connection 99: wait until that ends, or KILL 99 there",
        ),
        (
            12, {(12, 14)},
            (
                f"{_LOCK}, held up by mtsd's own connection 14 of user 'mtsd' from 'db1', at ALTER"
                " TABLE for 15 s"
            ),
        ),
        (
            12, {(12, 90), (12, 91), (12, 92), (12, 93)},
            (
                f"{_LOCK}, held up by connection 90, and connection 91, and connection 92, and 1"
                " more: wait until that ends, or KILL 90; KILL 91; KILL 92 there"
            ),
        ),
        (
            12, {(12, 20), (20, 12)},
            f"{_LOCK}: SHOW PROCESSLIST there shows who may have it, to a user with PROCESS",
        ),
        (
            12, {(20, 18)},
            f"{_LOCK}: SHOW PROCESSLIST there shows who may have it, to a user with PROCESS",
        ),
        (
            13, {(12, 18)},
            "Waiting for handler commit: if that lasts, see its error log (a full disk)",
        ),
        # Nobody has what these wait for.
        (
            16, set(),
            (
                "Waiting for someone to free space: its disk is full: free space there, on the disk"
                " that its error log names"
            ),
        ),
        (
            17, set(),
            (
                "Waiting for disk space: its disk is full: free space there, on the disk that its"
                " error log names"
            ),
        ),
        (14, {(12, 14)}, "altering table"),
        (15, set(), ""),
        (77, {(77, 18)}, ""),
    ],
)  # fmt: skip
def test_what_is_said(session: int, waits: set[tuple[int, int]], said: str) -> None:
    assert why(session, _SEEN, waits, own=(12, 13, 14, 15)) == said


class _Trial:
    """A daemon that follows while sessions of `app` get in its way on the target."""

    def __init__(self, pair: Pair, daemon: DaemonProcess) -> None:
        self._pair = pair
        self._daemon = daemon

    @contextmanager
    def held(self, *statements: str) -> Iterator[int]:
        """Have a session that has run these statements; it ends with the block."""
        with closing(self._pair.target.client()) as holder, holder.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            yield holder.thread_id()

    def says(self, *words: str) -> None:
        """Wait until the status does."""
        self._until(lambda status: all(word in status.doing for word in words), str(words))

    def goes_on(self) -> None:
        """Wait until nothing is in the way any more."""
        self._daemon.wait_until_caught_up()
        self._until(lambda status: not status.doing, "it says that something is in its way")

    def _until(self, fits: Callable[[Status], bool], what: str) -> None:
        assert self._daemon.wait_for_status(fits, what).state == "running"


@pytest.mark.servers
def test_a_lock_on_a_mysql_has_a_holder(tmp_path: Path) -> None:
    observed = {"performance_schema": "ON"}
    with (
        Pair(None, observed) as pair,
        DaemonProcess(pair.source, pair.target, tmp_path) as daemon,
    ):
        run(pair.source, *_TABLE)
        trial = _Trial(pair, daemon)
        trial.goes_on()
        with trial.held("FLUSH TABLES WITH READ LOCK") as holder:
            pair.source.sql("UPDATE a.t SET v = v + 1; CREATE DATABASE b")
            trial.says("Waiting for", f"held up by connection {holder} of user 'root'", "idle for")
            record = daemon.wait_for_record("workers wait for the target's answer")
            assert f"KILL {holder}" in str(record["because"])
            # The record of the other worker's definition waits for the same.
            time.sleep(2.5)
            said = [str(each["event"]) for each in daemon.records()]
            assert not [event for event in said if event.startswith("waiting for the target")]
        trial.goes_on()
        with trial.held("LOCK INSTANCE FOR BACKUP") as holder:
            pair.source.sql("ALTER TABLE a.t ADD COLUMN w INT")
            trial.says("Waiting for backup lock", f"held up by connection {holder} ")
        trial.goes_on()
        with trial.held("BEGIN", "UPDATE a.t SET w = 7") as holder:
            pair.source.sql("UPDATE a.t SET v = v + 1")
            trial.says(f"held up by connection {holder} ")
        trial.goes_on()
        with trial.held("BEGIN", "SELECT * FROM a.t") as holder:
            altering = Thread(target=_altered, args=(pair.target,))
            altering.start()
            wait_until_stuck(pair.target, "ALTER TABLE")
            pair.source.sql("UPDATE a.t SET v = v + 1")
            trial.says(_LOCK, f"held up by connection {holder} ", f"or KILL {holder} there")
        altering.join()
        trial.goes_on()
        os.kill(pair.target.pid, signal.SIGSTOP)
        try:
            pair.source.sql("UPDATE a.t SET v = v + 1")
            trial.says("waits for the target since", "it answers no new session either")
        finally:
            os.kill(pair.target.pid, signal.SIGCONT)
        trial.goes_on()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def _altered(server: Server) -> None:
    server.sql("ALTER TABLE a.t COMMENT 'changed by hand'; ALTER TABLE a.t COMMENT ''")


@pytest.mark.servers
def test_a_mariadb_names_the_holder_of_a_row(tmp_path: Path) -> None:
    with (
        families("11.8", "11.8") as pair,
        DaemonProcess(pair.source, pair.target, tmp_path) as daemon,
    ):
        run(pair.source, *_TABLE)
        trial = _Trial(pair, daemon)
        trial.goes_on()
        with trial.held("FLUSH TABLES WITH READ LOCK"):
            pair.source.sql("UPDATE a.t SET v = v + 1")
            trial.says("Waiting for backup lock: SHOW PROCESSLIST there")
        trial.goes_on()
        with trial.held("BEGIN", "UPDATE a.t SET v = 7") as holder:
            pair.source.sql("UPDATE a.t SET v = v + 1")
            trial.says(f"held up by connection {holder} ")
        trial.goes_on()
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
