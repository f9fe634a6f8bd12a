"""Switches while somebody locks, writes or lists: done, refused before all, or put back wholly."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pymysql
import pytest

from tests.fix_families import families
from tests.operations.move.application import Application, begun, wait_until
from tests.operations.move.both_ways import keeps_up, switch, switching, words_of
from tests.pages.shell import Page
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900)]

(_,), (THERE,), (BACK,) = Page("switch.md").steps
AS_BEFORE = "Everything is as it was before"
BEGUN = "1. the way back stands by"
SOON = ("--timeout", "12")
MORE = (
    "CREATE TABLE shop.big (id INT PRIMARY KEY)",
    "INSERT INTO shop.big VALUES (1)",
    "CREATE USER boss IDENTIFIED BY 'boss'",
    "GRANT ALL ON *.* TO boss",
)
EVENT = (
    "CREATE EVENT shop.tick ON SCHEDULE EVERY 1 SECOND DO"
    " INSERT INTO shop.orders (what) VALUES (UUID())"
)


@dataclass(frozen=True)
class Switched:
    """Who takes part; `said` is what the last try has said."""

    forth: DaemonProcess
    reverse: DaemonProcess
    application: Application

    def tried(self, *more: str) -> str:
        """Switch while somebody is in the way; back if it is done. Return what is said."""
        said = switch(THERE, self.forth, self.reverse, *SOON, *more, status=None)
        source, target = self.forth.source, self.forth.target
        if "switched over: " in said:
            assert is_read_only(source)
            assert not is_read_only(target)
        else:
            assert not is_read_only(source), said
            assert is_read_only(target), said
            assert AS_BEFORE in said or BEGUN not in said, said
        return said

    def back(self, *more: str) -> None:
        """Switch back, with nobody in the way."""
        self.application.wait_for(10)
        assert "switched over: " in switch(BACK, self.forth, self.reverse, *more)


def is_read_only(server: Server) -> bool:
    return server.sql("SELECT @@GLOBAL.read_only NOT IN ('OFF', '0')") == [(1,)]


@contextmanager
def held(server: Server, *statements: str) -> Iterator[None]:
    """Let a session keep what it has got by statements."""
    with closing(server.client()) as client, client.cursor() as cursor:
        for each in statements:
            cursor.execute(each)
        yield


@contextmanager
def altering(server: Server) -> Iterator[None]:
    """Let an ALTER TABLE last, which waits for somebody who reads the table."""

    def alter() -> None:
        with suppress(pymysql.err.MySQLError):
            server.sql("SET sql_log_bin = 0; ALTER TABLE shop.big COMMENT = 'x'")

    with held(server, "BEGIN", "SELECT * FROM shop.big"):
        thread = threading.Thread(target=alter)
        thread.start()
        altering = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'ALTER TABLE%'"
        wait_until(lambda: server.sql(altering) == [(1,)])
        yield
    thread.join(60)


@contextmanager
def idle(server: Server, count: int) -> Iterator[None]:
    """Let many clients be connected, and do nothing."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(closing(server.client(user="app", password="app")))
        yield


@contextmanager
def writing(server: Server) -> Iterator[None]:
    """Let somebody write who may although a server is read only, each time anew."""
    ends = threading.Event()

    def write() -> None:
        while not ends.wait(0.01):
            with (
                suppress(pymysql.err.MySQLError),
                closing(server.client(user="boss", password="boss")) as client,
            ):
                while not ends.wait(0.01):
                    with client.cursor() as cursor:
                        cursor.execute("INSERT INTO shop.orders (what) VALUES (UUID())")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join(60)


@contextmanager
def following(target: Server) -> Iterator[None]:
    """Let the target have another source, too."""
    target.sql(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '192.0.2.1', SOURCE_USER = 'repl'"
        " FOR CHANNEL 'more'"
    )
    yield
    target.sql("RESET REPLICA ALL FOR CHANNEL 'more'")


@contextmanager
def strictly(server: Server) -> Iterator[None]:
    """Keep mtsd out, too."""
    server.sql("SET GLOBAL super_read_only = ON")
    yield
    server.sql("SET GLOBAL super_read_only = OFF")


Held = Callable[[Server, Server], AbstractContextManager[None]]
LATE = ("s behind", "Switch once it runs", AS_BEFORE)
TEMPORARY = (
    "SET binlog_format = STATEMENT", "USE shop", "CREATE TEMPORARY TABLE t (a INT)",
    "INSERT INTO t VALUES (1)",
)  # fmt: skip
OF_MYSQL: tuple[tuple[Held, tuple[str, ...]], ...] = (
    # The position tables of the way back cannot be made there.
    (lambda source, _: held(source, "LOCK INSTANCE FOR BACKUP"), (AS_BEFORE,)),
    (lambda _, target: held(target, "LOCK INSTANCE FOR BACKUP"), ("switched over",)),
    (lambda source, _: held(source, "LOCK INSTANCE FOR BACKUP"), ("switched over",)),
    (lambda _, target: held(target, "FLUSH TABLES WITH READ LOCK"), LATE),
    (lambda _, target: held(target, "LOCK TABLES shop.orders WRITE"), LATE),
    (lambda source, _: held(source, "LOCK TABLES shop.big WRITE"), (AS_BEFORE,)),
    (lambda source, _: altering(source), ("--accept definitions",)),
    (lambda _, target: altering(target), ("switched over",)),
    (lambda source, _: idle(source, 100), ("switched over",)),
    (lambda source, _: held(source, *TEMPORARY), ("switched over",)),
    (
        lambda source, _: held(source, "BEGIN", "INSERT INTO shop.big VALUES (2)"),
        ("transactions are left open", "run for long"),
    ),
    (lambda source, _: writing(source), ("--accept ignores_read_only",)),
    (lambda _, target: strictly(target), LATE),
    (lambda _, target: following(target), ("--accept more_sources",)),
)


def test_whoever_is_in_the_way_of_mysql(tmp_path: Path) -> None:
    with switching(Pair(GTIDS, GTIDS), tmp_path, *MORE) as (forth, reverse, application):
        source, target = forth.source, forth.target
        both = Switched(forth, reverse, application)
        for hold, expected in OF_MYSQL:
            wait_until(partial(keeps_up, forth))
            with hold(source, target):
                said = both.tried()
            assert any(each in said for each in expected), said
            application.wait_for(10)
            if "switched over" in said:
                both.back()
        # Somebody who comes in the pause.
        words = (*words_of(THERE, forth, reverse), *SOON)
        with begun("starts its daemon", tmp_path, *words) as process, writing(source):
            process.wait(100)
        assert is_read_only(source) != is_read_only(target), (tmp_path / "said.txt").read_text()
        if is_read_only(source):
            both.back()
        forth.settings["filter.ignore_db"] = ["other"]
        forth.configure()
        assert "--accept filter" in both.tried()
        assert "switched over: " in both.tried("--accept", "filter")
        both.back("--accept", "filter")


def test_events_of_each_second(tmp_path: Path) -> None:
    with switching(Pair(GTIDS, GTIDS), tmp_path, EVENT) as (forth, reverse, application):
        both = Switched(forth, reverse, application)
        assert "--accept events" in both.tried()
        for _ in range(3):
            application.wait_for(500)
            assert "switched over: " in both.tried("--enable-events")
            application.wait_for(500)
            both.back("--enable-events")
        forth.source.sql("DROP EVENT shop.tick")


def test_whoever_is_in_the_way_of_mariadb(tmp_path: Path) -> None:
    pair = families("11.8", "9.7", {"binlog_row_metadata": "FULL"})
    for_mariadb = [each.replace("ALL ON", "SUPER, INSERT, SELECT ON") for each in MORE]
    stages = ("BACKUP STAGE START", "BACKUP STAGE FLUSH", "BACKUP STAGE BLOCK_DDL")
    holds: tuple[tuple[Held, tuple[str, ...]], ...] = (
        (lambda source, _: held(source, *stages), ("switched over", AS_BEFORE)),
        (lambda source, _: held(source, *stages, "BACKUP STAGE BLOCK_COMMIT"), LATE),
        (lambda source, _: held(source, "BACKUP LOCK shop.orders"), ("switched over", AS_BEFORE)),
        (lambda source, _: held(source, "FLUSH TABLES WITH READ LOCK"), (AS_BEFORE,)),
        (lambda source, _: held(source, "LOCK TABLES shop.orders WRITE"), (AS_BEFORE,)),
        (lambda _, target: held(target, "LOCK TABLES shop.orders WRITE"), LATE),
        (lambda source, _: writing(source), ("--accept ignores_read_only",)),
        (lambda source, _: altering(source), ("--accept definitions",)),
    )
    with switching(pair, tmp_path, *for_mariadb) as (forth, reverse, application):
        both = Switched(forth, reverse, application)
        for hold, expected in holds:
            wait_until(partial(keeps_up, forth))
            with hold(forth.source, forth.target):
                said = both.tried()
            assert any(each in said for each in expected), said
            application.wait_for(10)
            if "switched over" in said:
                both.back()
