"""`mtsd switchover` there and back between real servers, under a load, and put back."""

import signal
from contextlib import closing
from pathlib import Path

import pytest

from tests.fix_daemon import command, stops
from tests.fix_families import families
from tests.operations.move.application import killed_at
from tests.operations.move.both_ways import switch, switching, words_of
from tests.pages.shell import Page
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair
from tests.switches.run import Wanted, switches

pytestmark = pytest.mark.servers

EVENT = "CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM shop.x"


def test_there_and_back_under_a_load(tmp_path: Path) -> None:
    (look,), (there,), (back,) = Page("switch.md").steps
    with switching(Pair(GTIDS, {**GTIDS, "read_only": 1}), tmp_path, EVENT) as (
        forth, reverse, application,
    ):  # fmt: skip
        source, target = forth.source, forth.target
        said = switch(look, forth, reverse)
        assert "on the source: SET GLOBAL super_read_only = ON" in said
        assert "--accept events" in said
        # Somebody has a transaction open that keeps locks: nothing remains of the try.
        with closing(source.client()) as client, client.cursor() as cursor:
            client.begin()
            cursor.execute("INSERT INTO shop.orders (what) VALUES ('never')")
            for by, status in ((signal.SIGINT, 3), (signal.SIGKILL, -signal.SIGKILL)):
                longer = ("--grace", "60", "--longest", "600", "--enable-events")
                words = (*words_of(there, forth, reverse), *longer)
                assert killed_at("left open", tmp_path, *words, by=by) == status
                if by is signal.SIGINT:
                    said = (tmp_path / "begun.txt").read_text(encoding="utf-8")
                    assert "interrupted. Everything is as it was before" in said
                    application.wait_for(20)
        assert source.sql("SELECT @@read_only") == [(1,)]
        said = switch(back, forth, reverse, "--put-back", status=3)
        assert "leave out --back" in said
        said = switch(there, forth, reverse, "--put-back", "--enable-events")
        assert "put back: writers are on the source again" in said
        assert warnings_of(forth) == ()
        application.wait_for(20)
        said = switch(there, forth, reverse, "--enable-events")
        assert "switched over: " in said
        application.wait_for(20)
        assert target.sql("SELECT status FROM information_schema.events") == [("ENABLED",)]
        assert warnings_of(reverse) == ()
        files = f"--config={forth.config} --reverse-config={reverse.config}"
        fenced = "this channel was handed over to the other direction"
        told = command(forth, "status", status=4)
        assert f"warning         {fenced}" in told
        assert f"mtsd switchover --back {files} takes it back" in told
        assert fenced in stops(forth)
        assert source.sql("SELECT @@event_scheduler") == [("ON",)]
        said = switch(back, forth, reverse, "--enable-events")
        assert "pause" in said
        assert source.sql("SELECT status FROM information_schema.events") == [("ENABLED",)]


def warnings_of(daemon: DaemonProcess) -> tuple[str, ...]:
    status = daemon.status()
    assert status is not None
    return status.warnings


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("source", ["9.7", "11.8"])
def test_killed_at_each_act(tmp_path: Path, source: str) -> None:
    tally = switches(tmp_path, source, Wanted(times=12, kills=1))
    for line in tally.lines():
        print(line)
    assert tally.wrong == []


@pytest.mark.long
def test_from_mariadb_to_mysql(tmp_path: Path) -> None:
    _, (there,), _ = Page("switch.md").steps
    pair = families("11.8", "9.7", {"binlog_row_metadata": "FULL"})
    with switching(pair, tmp_path) as (forth, reverse, application):
        said = switch(there, forth, reverse)
        assert "switched over: " in said
        application.wait_for(20)
        print(said.splitlines()[-2])
