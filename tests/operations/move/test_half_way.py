"""What a move finds, or leaves, half way: gaps, locks, channels, fences; on real servers."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from mtsd.config import Settings, load
from mtsd.model.errors import NeedsPersonError
from mtsd.operations.move.admin import AdminSession, admin_endpoint
from mtsd.operations.move.fence import remove_fence, set_fence
from mtsd.operations.move.own_channel import find_channel
from mtsd.operations.move.source_now import read_source_now
from mtsd.operations.move.takeover import Found, place_of
from mtsd.operations.recorded import read_fence_of
from mtsd.wire.replica_words import MYSQL_REPLICA
from mtsd.wire.traits import read_traits
from tests.fix_daemon import catch_up, command, stops
from tests.operations.move.application import begun, wait_until
from tests.operations.move.moving import (
    HELD,
    PARALLEL,
    ROWS,
    configured,
    crash_past_a_lock,
    insert,
    move,
    mtsd_goes_on,
    past_a_lock,
    shop_by_itself,
    wait_for_rows,
)
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, NO_GTIDS
from tests.servers.pair import Pair

pytestmark = [pytest.mark.servers, pytest.mark.long]


STOPPING = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'STOP REPLICA%'"


def takeover_of(daemon: DaemonProcess) -> tuple[str, ...]:
    return ("takeover", "--execute", "--admin-user", "root", "--config", str(daemon.config))


def settings_of(daemon: DaemonProcess) -> Settings:
    daemon.configure()
    return load(daemon.config, {}, {}, None).settings


def test_by_gtid_with_gaps_between_the_workers_of_a_killed_server(tmp_path: Path) -> None:
    with Pair(GTIDS, {**GTIDS, **PARALLEL}) as pair:
        source, target = pair.source, pair.target
        shop_by_itself(pair, MYSQL_REPLICA, "SOURCE_AUTO_POSITION = 1", HELD)
        wait_for_rows(pair)
        crash_past_a_lock(pair)
        assert target.sql("SELECT * FROM shop.held") == []
        ((executed,),) = target.sql("SELECT @@GLOBAL.gtid_executed")
        # There is a gap: else this shows nothing.
        assert executed.count("-") > 5 or "," in executed or executed.count(":") > 1, executed
        daemon = configured(pair, tmp_path)
        said = move(daemon, "takeover")
        assert "SQL_AFTER_MTS_GAPS" not in said
        assert target.sql("SELECT * FROM shop.held") == []
        mtsd_goes_on(daemon)
        assert target.sql("SELECT * FROM shop.held") == [(1,)]
        move(daemon, "handover", "--watch", "0.2")
        insert(source, "by the own replica")
        wait_for_rows(pair)
        assert target.sql(ROWS) == source.sql(ROWS)
        pair.discard()


@pytest.mark.timeout(200)
def test_a_stop_that_waits_for_a_lock_is_told(tmp_path: Path) -> None:
    with Pair(GTIDS, {**GTIDS, **PARALLEL}) as pair:
        source, target = pair.source, pair.target
        shop_by_itself(pair, MYSQL_REPLICA, "SOURCE_AUTO_POSITION = 1", HELD)
        wait_for_rows(pair)
        daemon = configured(pair, tmp_path)
        with past_a_lock(pair):
            said = move(daemon, "takeover", "--timeout", "3", status=3)
        assert "it took longer than 3 s" in said
        # The server goes on stopping, and does not start anything meanwhile.
        assert "do it by hand: on the target: START REPLICA" in said
        target.sql(MYSQL_REPLICA.start(""))
        insert(source, "by the own replica after all")
        wait_for_rows(pair)
        wait_for_rows(pair, "shop.held")
        pair.discard()


def test_by_file_no_place_is_taken_while_something_is_missing(tmp_path: Path) -> None:
    with Pair(NO_GTIDS, {**NO_GTIDS, **PARALLEL}) as pair:
        source, target = pair.source, pair.target
        shop_by_itself(pair, MYSQL_REPLICA, "SOURCE_AUTO_POSITION = 0", HELD)
        wait_for_rows(pair)
        crash_past_a_lock(pair)
        settings = settings_of(DaemonProcess(source, target, tmp_path))

        async def place() -> object:
            session = AdminSession(admin_endpoint("target", settings.target, None))
            try:
                traits = await read_traits(await session.connection())
                now = await read_source_now(settings)
                channel = await find_channel(session, traits.server, now.known)
                return await place_of(session, Found(channel, traits, now, None, gap=False))
            finally:
                session.close()

        with pytest.raises(NeedsPersonError, match="some transactions between are applied"):
            asyncio.run(place())
        pair.discard()


def test_a_handover_by_file_does_not_go_back(tmp_path: Path) -> None:
    with Pair(NO_GTIDS, NO_GTIDS) as pair:
        source, target = pair.source, pair.target
        shop_by_itself(pair, MYSQL_REPLICA, "SOURCE_AUTO_POSITION = 0")
        insert(source, "by the own replica")
        wait_for_rows(pair)
        daemon = configured(pair, tmp_path)
        move(daemon, "takeover")
        # What does not begin to be configured leaves nothing.
        named = ("--replica-channel", "east", "--replica-host", "h" * 300)
        assert "Everything is as it was before" in move(daemon, "handover", *named, status=3)
        assert target.sql("SHOW REPLICA STATUS") == []
        move(daemon, "handover", "--watch", "0.1")
        insert(source, "after mtsd", "after mtsd, too")
        wait_for_rows(pair)
        target.sql("STOP REPLICA")
        said = command(daemon, "handover", status=3)
        assert "has applied more than mtsd" in said
        assert "mtsd takeover --execute" in said
        move(daemon, "takeover")
        mtsd_goes_on(daemon)
        pair.discard()


def test_a_target_without_position_tables_can_be_fenced_off(tmp_path: Path) -> None:
    with Pair(GTIDS, GTIDS) as pair:
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        settings = settings_of(daemon)
        assert asyncio.run(read_fence_of(settings)) is None
        asyncio.run(remove_fence(settings))
        assert pair.target.sql("SHOW DATABASES LIKE 'mtsd'") == []
        asyncio.run(set_fence(settings, "somebody", command_words="takeover"))
        assert "was handed over to somebody" in stops(daemon)
        asyncio.run(remove_fence(settings))
        catch_up(daemon)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["command", "server"])
def test_by_file_killed_while_gaps_are_filled(tmp_path: Path, what: str) -> None:
    with Pair(NO_GTIDS, {**NO_GTIDS, **PARALLEL}) as pair:
        target = pair.target
        shop_by_itself(pair, MYSQL_REPLICA, "SOURCE_AUTO_POSITION = 0", HELD)
        wait_for_rows(pair)
        crash_past_a_lock(pair)
        daemon = configured(pair, tmp_path)
        with closing(target.client()) as client, client.cursor() as cursor:
            client.begin()
            cursor.execute("INSERT INTO shop.held VALUES (1)")
            with begun("applier has stopped by itself", tmp_path, *takeover_of(daemon)) as process:
                if what == "command":
                    process.kill()
                    process.wait(60)
                    assert "as after a takeover that was killed" in command(daemon, "takeover")
                    said = move(daemon, "takeover", "--timeout", "3", status=3)
                    assert "it took longer than 3 s" in said
                    assert "Everything is as it was before" in said
                else:
                    target.kill()
                    assert process.wait(200) == 3
                    said = (tmp_path / "said.txt").read_text()
                    assert "do it by hand: on the target: STOP REPLICA" in said
        if what == "server":
            target.start()
        said = move(daemon, "takeover")
        assert "taken over: " in said
        assert target.sql("SELECT * FROM shop.held") == [(1,)]
        mtsd_goes_on(daemon)
        pair.discard()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["command", "server"])
def test_by_gtid_killed_while_a_stop_fills_gaps(tmp_path: Path, what: str) -> None:
    with Pair(GTIDS, {**GTIDS, **PARALLEL}) as pair:
        target = pair.target
        shop_by_itself(pair, MYSQL_REPLICA, "SOURCE_AUTO_POSITION = 1", HELD)
        wait_for_rows(pair)
        daemon = configured(pair, tmp_path)
        with (
            past_a_lock(pair),
            begun("STOP REPLICA", tmp_path, *takeover_of(daemon)) as process,
        ):
            if what == "command":
                wait_until(lambda: bool(target.sql(STOPPING)))
                process.kill()
                process.wait(60)
                # The server goes on with the statement, whose session holds the move's lock.
                said = move(daemon, "takeover", status=3)
                assert "another move is under way" in said
            else:
                target.kill()
                assert process.wait(200) == 3
        if what == "server":
            target.start()
        wait_until(lambda: not target.sql(STOPPING))
        said = move(daemon, "takeover")
        assert "equal at GTID" in said
        mtsd_goes_on(daemon)
        assert target.sql("SELECT * FROM shop.held") == [(1,)]
        pair.discard()
