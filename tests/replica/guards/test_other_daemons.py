"""Who holds the lock of a source without a position in the own schema: a daemon, or a stranger."""

from contextlib import closing
from pathlib import Path

import pytest

from mtsd.apply.position.lock_names import OVERLAPPING_SESSIONS, LockNames, SessionOf
from mtsd.apply.position.other_schemas import shows_all
from mtsd.replica.guards.other_daemons import MAY_RUN, RUNS_ALREADY, Elsewhere, beside
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

ALL = "GRANT SELECT, INSERT, UPDATE ON *.* TO `m`@`%` WITH GRANT OPTION"


@pytest.mark.parametrize(
    ("strange", "elsewhere", "reason"),
    [
        ((), Elsewhere(), None),
        ((7,), Elsewhere(), None),
        ((), Elsewhere(hides=True), None),
        ((7,), Elsewhere(hides=True), MAY_RUN),
        ((), Elsewhere(("other",)), RUNS_ALREADY),
        ((7,), Elsewhere(("other",), hides=True), RUNS_ALREADY),
    ],
)
def test_who_prevents_a_start(
    strange: tuple[int, ...], elsewhere: Elsewhere, reason: object
) -> None:
    found = beside("u", strange, elsewhere, "connection 7 holds it")
    assert (found and found.reason) is reason


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ([ALL], True),
        (["GRANT ALL PRIVILEGES ON *.* TO `m`@`%` IDENTIFIED BY PASSWORD '*1'"], True),
        (["GRANT USAGE ON *.* TO `m`@`%`", "GRANT SELECT ON `mtsd`.* TO `m`@`%`"], False),
        (["GRANT SHOW VIEW ON *.* TO `m`@`%`", "GRANT `r`@`%` TO `m`@`%`"], False),
        ([ALL, "REVOKE INSERT, SELECT ON `mysql`.* FROM `m`@`%`"], True),
        ([ALL, "REVOKE SELECT ON `secret`.* FROM `m`@`%`"], False),
        ([ALL, "REVOKE INSERT ON `secret`.* FROM `m`@`%`"], True),
        ([ALL, "GRANT SELECT (a) ON `a`.`t` TO `m`@`%`"], True),
    ],
)
def test_who_sees_every_schema(grants: list[str], expected: bool) -> None:
    assert shows_all(grants) is expected


def test_names_fit_and_tell_nothing() -> None:
    names = LockNames("secret", "c" * 64)
    found = {
        names.session(0), names.session(-1), names.session(1024),
        *(names.session(1024, of) for of in (SessionOf.BRANCH, *OVERLAPPING_SESSIONS)),
        names.start("3e11fa47-71ca-11e1-9e33-c80aa9429562"),
    }  # fmt: skip
    assert len(found) == 7
    for name in found:
        assert len(name) <= 64
        assert "secret" not in name
        assert name not in {LockNames("other", "c" * 64).session(0), names.channel}
    assert names.start("A-1") == names.start("a-1")
    assert "secret" not in repr(names)


@pytest.mark.servers
def test_a_stranger_who_holds_every_name_that_he_can_know(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair, DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        ((uuid,),) = pair.source.sql("SELECT @@server_uuid")
        pair.target.sql("CREATE USER stranger; CREATE USER mtsd")
        guessed = ["mtsd::0", "mtsd::1", f"mtsd-source:{uuid}:start", f"mtsd-source:{uuid}"]
        guessed += [f"mtsd-source:{uuid}:{place}" for place in range(1, 16)]
        with closing(pair.target.client(user="stranger")) as client, client.cursor() as cursor:
            for name in guessed:
                cursor.execute("SELECT GET_LOCK(%s, 0)", (name,))
            # Root sees every schema, so it is no mtsd that holds them. A copy of the own one
            # has the same locks, and nobody else.
            pair.target.sql("CREATE DATABASE copy")
            for table in ("slave_lock_token", "slave_relay_log_info"):
                pair.target.sql(f"CREATE TABLE copy.{table} AS SELECT * FROM mtsd.{table}")
            daemon.start()
            daemon.wait_until_running()
            told = daemon.wait_for_record("a stranger holds a lock")
            assert "of user 'stranger' from" in str(told["held"])
            assert daemon.stop() == 0
            # Who sees less cannot know that.
            pair.target.sql(
                "GRANT INSERT, UPDATE, DELETE, CREATE, BINLOG_ADMIN, SYSTEM_VARIABLES_ADMIN"
                " ON *.* TO mtsd; GRANT SELECT ON mtsd.* TO mtsd"
            )
            daemon.settings["target.user"] = "mtsd"
            daemon.start()
            assert daemon.wait() == 3
            assert "of a user whose connections this user may not see" in daemon.last_words()
            assert "SELECT on *.*" in daemon.last_words()
