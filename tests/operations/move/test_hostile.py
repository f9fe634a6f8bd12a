"""Switches where somebody is in the way: all is put back, or one line says what to do."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pymysql
import pytest

from tests.operations.move.application import ACCOUNT, begun, wait_until
from tests.operations.move.both_ways import keeps_up, switch, switching, words_of
from tests.pages.shell import Page
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900)]

(_,), (THERE,), (BACK,) = Page("switch.md").steps
AS_BEFORE = "Everything is as it was before"
SOON = ("--timeout", "10", "--longest", "600")
LOCKS = ("FLUSH TABLES WITH READ LOCK", "LOCK TABLES shop.orders WRITE")
WEAK = "CREATE USER weak IDENTIFIED BY 'weak'; GRANT PROCESS, RELOAD, SELECT, EVENT ON *.* TO weak"


@contextmanager
def held(server: Server, statement: str) -> Iterator[None]:
    """Let a session keep what it has got by a statement."""
    with closing(server.client()) as client, client.cursor() as cursor:
        cursor.execute(statement)
        yield


def is_open(server: Server) -> bool:
    return server.sql("SELECT @@read_only, @@super_read_only") == [(0, 0)]


@pytest.mark.parametrize("lock", LOCKS)
def test_whoever_locks_the_source_stops_a_switch_and_nothing_of_it_comes_later(
    tmp_path: Path, lock: str
) -> None:
    with switching(Pair(GTIDS, GTIDS), tmp_path, WEAK) as (forth, reverse, application):
        source, target = forth.source, forth.target
        everything = lock == LOCKS[0]
        if everything:
            with held(source, lock):
                assert AS_BEFORE in switch(THERE, forth, reverse, *SOON, status=3)
            application.wait_for(10)
        # In the pause: everybody waits for the lock, and so does the statement that ends it.
        words = (*words_of(THERE, forth, reverse), *SOON)
        with begun("starts its daemon", tmp_path, *words) as process:
            with held(source, lock):
                assert process.wait(200) == 3
            said = (tmp_path / "said.txt").read_text()
            assert AS_BEFORE in said
        assert is_open(source)
        assert not is_open(target)
        application.wait_for(20)
        # What was given up has no effect later.
        assert (
            source.sql("SELECT * FROM information_schema.processlist WHERE info LIKE 'SET G%'")
            == []
        )
        assert is_open(source)
        assert "switched over: " in switch(THERE, forth, reverse)


def test_who_is_in_the_way_is_named(tmp_path: Path) -> None:
    with switching(Pair(GTIDS, GTIDS), tmp_path, WEAK) as (forth, reverse, application):
        source, target = forth.source, forth.target
        # An admin who lacks a right is found before the pause.
        (tmp_path / "weak.pw").write_text("weak")
        wait_until(lambda: target.sql("SELECT 1 FROM mysql.user WHERE user = 'weak'") == [(1,)])
        weak = THERE.replace("--admin-source-user root", "--admin-source-user weak")
        given = ("--admin-source-password-file", str(tmp_path / "weak.pw"))
        said = switch(weak, forth, reverse, *given, status=3)
        assert "GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO 'weak'@'%'" in said
        (tmp_path / "weak.pw").write_text("wrong")
        assert "refuses user 'weak'" in switch(weak, forth, reverse, *given, status=3)
        # Somebody who may write to a server that is read only.
        source.sql("CREATE USER boss IDENTIFIED BY 'boss'; GRANT CONNECTION_ADMIN ON *.* TO boss")
        with closing(source.client(user="boss", password="boss")):
            said = switch(THERE, forth, reverse, status=3)
        assert "--accept ignores_read_only" in said
        # The application's account is missing.
        target.sql("DROP USER app")
        assert "'app'@'%' is not there" in switch(THERE, forth, reverse, status=3)
        target.sql(ACCOUNT)
        # What is prepared could not be committed any more.
        source.sql(
            "XA START 'x'; INSERT INTO shop.orders (what) VALUES ('xa'); XA END 'x'; XA PREPARE 'x'"
        )
        said = switch(THERE, forth, reverse, status=3)
        assert "1 XA transactions are prepared on the source" in said
        source.sql("XA COMMIT 'x'")
        # The way back cannot connect.
        reverse.settings["source.user"] = "nobody"
        reverse.configure()
        assert "refuses user 'nobody'" in switch(THERE, forth, reverse, status=3)
        reverse.settings["source.user"] = "root"
        reverse.configure()
        # It could not write there in the pause.
        source.sql(
            "CREATE USER kept_out; GRANT ALL ON *.* TO kept_out;"
            "REVOKE CONNECTION_ADMIN, SUPER ON *.* FROM kept_out"
        )
        reverse.settings["target.user"] = "kept_out"
        reverse.configure()
        said = switch(THERE, forth, reverse, status=3)
        assert "GRANT CONNECTION_ADMIN ON *.* TO 'kept_out'@'%'" in said
        source.sql("DROP USER kept_out")
        reverse.settings["target.user"] = "root"
        reverse.configure()
        # A second switch beside one.
        longer = ("--grace", "60", "--longest", "600")
        with closing(source.client()) as client, client.cursor() as cursor:
            client.begin()
            cursor.execute("INSERT INTO shop.orders (what) VALUES ('never')")
            words = (*words_of(THERE, forth, reverse), *longer)
            wait_until(partial(keeps_up, forth))
            with begun("left open", tmp_path, *words) as process:
                for line in (THERE, THERE.replace(" --execute", "")):
                    said = switch(line, forth, reverse, status=3)
                    assert "another move is under way" in said
                client.rollback()
                assert process.wait(200) == 0, (tmp_path / "said.txt").read_text()
        assert is_open(target)
        application.wait_for(10)


# A client that loses its server while it logs in does not close its socket.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("act", ["starts its daemon", "waits until the target has all", "wakes"])
@pytest.mark.parametrize("which", ["source", "target"])
def test_a_server_that_is_killed_in_the_middle(tmp_path: Path, act: str, which: str) -> None:
    pair = Pair(GTIDS, {**GTIDS, "read_only": 1})
    with switching(pair, tmp_path) as (forth, reverse, application):
        source, target = forth.source, forth.target
        server = target if which == "target" else source
        words = words_of(THERE, forth, reverse)
        with begun(act, tmp_path, *words) as process:
            server.kill()
            # With what is in its option file; a read_only that was SET is gone.
            server.start()
            status = process.wait(200)
        said = (tmp_path / "said.txt").read_text()
        if status:
            assert AS_BEFORE in said or "do it by hand" in said, said
            if "do it by hand" in said:
                switch(THERE, forth, reverse, "--put-back")
        assert is_open(source) != is_open(target), said
        application.wait_for(10)


def test_position_tables_that_somebody_locks(tmp_path: Path) -> None:
    with switching(Pair(GTIDS, GTIDS), tmp_path, WEAK) as (forth, reverse, application):
        source, target = forth.source, forth.target
        words = (*words_of(THERE, forth, reverse), *SOON)
        with begun("waits until the target has all", tmp_path, *words) as process:
            try:
                with held(target, "LOCK TABLES mtsd.slave_relay_log_info READ"):
                    status = process.wait(200)
            except pymysql.err.MySQLError as error:
                raise AssertionError(process.wait(200)) from error
        said = (tmp_path / "said.txt").read_text()
        assert status in {0, 3}, said
        if status and "do it by hand" in said:
            switch(THERE, forth, reverse, "--put-back")
        assert is_open(source) != is_open(target), said
        application.wait_for(10)
