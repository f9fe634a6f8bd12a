"""`mtsd switchover` there and back between real servers, under a load, and put back."""

import signal
from contextlib import closing
from pathlib import Path

import pytest

from tests.fix_daemon import stops
from tests.fix_families import families
from tests.operations.move.application import ACCOUNT, Application, killed_at, wait_until
from tests.operations.move.both_ways import both_ways, switch, words_of
from tests.operations.move.moving import ROWS, SHOP
from tests.pages.shell import Page
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair
from tests.switches.run import Wanted, switches

pytestmark = pytest.mark.servers


def test_there_and_back_under_a_load(tmp_path: Path) -> None:
    (look,), (there,), (back,) = Page("switch.md").steps
    with Pair(GTIDS, {**GTIDS, "read_only": 1}) as pair:
        source, target = pair.source, pair.target
        source.sql(f"{SHOP}; CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM shop.x")
        source.sql(ACCOUNT)
        with both_ways(pair, tmp_path) as (forth, reverse):
            assert "does not run" in switch(there, forth, reverse, status=3)
            forth.start()
            forth.wait_until_caught_up()
            assert "on the source: SET GLOBAL super_read_only = ON" in switch(look, forth, reverse)
            with Application(source, target) as application:
                application.wait_for(20)
                # Somebody has a transaction open that keeps locks: nothing remains of the try.
                with closing(source.client()) as client, client.cursor() as cursor:
                    client.begin()
                    cursor.execute("INSERT INTO shop.orders (what) VALUES ('never')")
                    for by, status in ((signal.SIGINT, 3), (signal.SIGKILL, -signal.SIGKILL)):
                        longer = ("--grace", "60", "--longest", "600")
                        words = (*words_of(there, forth, reverse), *longer)
                        assert killed_at("left open", tmp_path, *words, by=by) == status
                        if by is signal.SIGINT:
                            said = (tmp_path / "killed.txt").read_text(encoding="utf-8")
                            assert "interrupted. Everything is as it was before" in said
                            application.wait_for(20)
                assert source.sql("SELECT @@read_only") == [(1,)]
                said = switch(back, forth, reverse, "--put-back", status=3)
                assert "leave out --back" in said
                said = switch(there, forth, reverse, "--put-back")
                assert "put back: writers are on the source again" in said
                application.wait_for(20)
                said = switch(there, forth, reverse, "--enable-events")
                assert "switched over: " in said
                application.wait_for(20)
                assert target.sql("SELECT status FROM information_schema.events") == [("ENABLED",)]
                assert "was handed over to the other direction" in stops(forth)
                said = switch(back, forth, reverse)
                assert "pause" in said
                application.wait_for(20)
            wait_until(lambda: target.sql(ROWS) == source.sql(ROWS))
            rows = [what for _, what in source.sql(ROWS)]
            assert len(set(rows)) == len(rows)
            assert set(rows) >= application.acknowledged
        pair.discard()


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
    with families("11.8", "9.7", {"binlog_row_metadata": "FULL"}) as pair:
        source, target = pair.source, pair.target
        target.sql("SET GLOBAL read_only = ON")
        source.sql(f"{SHOP}; ALTER DATABASE shop CHARACTER SET utf8mb4")
        with both_ways(pair, tmp_path) as (forth, reverse):
            forth.start()
            forth.wait_until_caught_up()
            for server in (source, target):
                server.sql(f"SET sql_log_bin = 0; {ACCOUNT}")
            with Application(source, target) as application:
                application.wait_for(20)
                said = switch(there, forth, reverse)
                assert "switched over: " in said
                application.wait_for(20)
            print(said.splitlines()[-2])
            wait_until(lambda: target.sql(ROWS) == source.sql(ROWS))
            rows = [what for _, what in source.sql(ROWS)]
            assert len(set(rows)) == len(rows)
            assert set(rows) >= application.acknowledged
        pair.discard()
