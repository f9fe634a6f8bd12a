"""The steps of a switch in a small world, stopped after every act: what is undone restores all.

At no moment may an application write to a server whose writes do not reach the other one.
"""

from dataclasses import dataclass, replace

import pytest

from mtsd.config.settings import FilterSettings
from mtsd.control.status import Status
from mtsd.operations.move.accounts import lacking, privileges_in
from mtsd.operations.move.one_sided import Event, events_that_go_on, filtered, more_sources
from mtsd.operations.move.steps import Act, Heading, Journey, MoveStatement
from mtsd.operations.move.switching import (
    BY_A_SWITCH,
    TILL_A_SWITCH,
    Opened,
    Switch,
    daemon_refusals,
    opened_differences,
    own_replica_refusals,
    put_back_refusals,
    steps_of,
    undoing_of,
)
from mtsd.operations.move.writers import ServerSession, Writers, cut_off, sessions_of
from mtsd.wire.exchange import Value
from mtsd.wire.replica_status import replica_status

MYSQL = Switch(
    "there", "back", Opened(False, False), Opened(True, False), events=("`a`.`e`",), scheduler=True
)
STRICT = replace(MYSQL, target=Opened(True, True), kill=True)
MARIADB = replace(MYSQL, source=Opened(False, None), target=Opened(True, None))


@dataclass(frozen=True)
class World:
    """Both servers and both daemons; `undone` are tasks that undo, whatever was done."""

    source: Opened
    target: Opened
    forth_runs: bool = True
    forth_fenced: bool = False
    back_begun: bool = False
    back_runs: bool = False
    back_stands_by: bool = False
    scheduled: bool = True
    """The source runs its events."""
    events_gone: bool = False
    """The target runs them."""

    def after(self, act: Act) -> "World":
        """Return the world after an act."""
        if isinstance(act, MoveStatement):
            return self._after_statement(act)
        match act.name:
            case "stop":
                return replace(self, forth_runs=False)
            case "fence":
                assert not self.forth_runs
                return replace(self, forth_fenced=True)
            case "unfence":
                return replace(self, forth_fenced=False)
            case "restart":
                assert not self.forth_fenced
                assert not self.back_stands_by
                return replace(self, forth_runs=True)
            case "begin":
                # What the way back writes, it may write now.
                assert self.source.super_read_only is not True
                return replace(self, back_begun=True)
            case "start back":
                return replace(self, back_stands_by=True)
            case "wake":
                assert self.back_begun
                assert self.back_stands_by
                return replace(self, back_runs=True)
            case "stop back":
                return replace(self, back_runs=False, back_stands_by=False)
            case "events gone":
                return replace(self, events_gone=True)
            case "forget back":
                assert not self.back_runs
                return replace(self, back_begun=False)
        return self

    def _after_statement(self, statement: MoveStatement) -> "World":
        if "EVENT" in statement.sql:
            return self
        now = self.source if statement.server == "source" else self.target
        name, _, value = statement.sql.removeprefix("SET GLOBAL ").partition(" = ")
        on = value == "ON"
        if name == "event_scheduler":
            return replace(self, scheduled=on)
        if name == "super_read_only":
            now = Opened(on or now.read_only, on)
        else:
            above = None if now.super_read_only is None else now.super_read_only and on
            now = Opened(on, above)
        if statement.server == "source":
            return replace(self, source=now)
        return replace(self, target=now)

    def check(self) -> None:
        """Whoever may write somewhere writes to a server that is followed, or alone."""
        assert not (self.forth_runs and self.back_runs), "a circle"
        if not self.target.read_only:
            assert self.back_runs
            assert self.forth_fenced
            assert self.source.read_only
        if not self.source.read_only:
            assert not self.back_runs
        elif not self.source.super_read_only:
            assert self.events_gone or not self.scheduled, "what events write stays there"


@pytest.mark.parametrize("switch", [MYSQL, STRICT, MARIADB], ids=["MySQL", "strict", "MariaDB"])
def test_stopped_anywhere_everything_is_as_before_or_complete(switch: Switch) -> None:
    steps = steps_of(switch)
    first = World(switch.source, switch.target)
    count = sum(len(step.acts) for step in steps)
    opened = next(
        sum(len(step.acts) for step in steps[:at]) for at, step in enumerate(steps) if step.final
    )
    for stop in range(count + 1):
        # An act that fails may have been carried out all the same.
        for half_done in (False, True):
            world, journey = first, Journey(steps)
            for _ in range(stop):
                assert journey.due is not None
                world, journey = world.after(journey.due), journey.succeeded()
                world.check()
            if journey.due is not None:
                world = world.after(journey.due) if half_done else world
                journey = journey.failed(surely=not half_done)
            while journey.due is not None:
                world, journey = world.after(journey.due), journey.succeeded()
                assert world.target.read_only
            if stop < opened or (stop == opened and not half_done):
                assert world == first
                assert journey.way is Heading.PUT_BACK
            else:
                assert world.back_runs
                assert not world.target.read_only
                assert not world.forth_runs


@pytest.mark.parametrize("switch", [MYSQL, STRICT, MARIADB], ids=["MySQL", "strict", "MariaDB"])
def test_a_switch_that_was_killed_anywhere_can_be_put_back(switch: Switch) -> None:
    world = first = World(switch.source, switch.target)
    journey = Journey(steps_of(switch))
    while world.target.read_only and journey.due is not None:
        put_back = world
        for act in undoing_of(switch).acts:
            put_back = put_back.after(act)
            assert put_back.target.read_only
        assert put_back == first
        world, journey = world.after(journey.due), journey.succeeded()
    assert world.back_runs


@pytest.mark.parametrize(
    ("config", "back", "under_way"),
    [
        ("", "", "both"),
        ("", TILL_A_SWITCH, "forth"),
        (BY_A_SWITCH, TILL_A_SWITCH, "forth"),
        (BY_A_SWITCH, "", "forth"),
        (TILL_A_SWITCH, "", "back"),
        (TILL_A_SWITCH, BY_A_SWITCH, "back"),
        ("", BY_A_SWITCH, "back"),
    ],
)
def test_only_the_switch_that_was_killed_is_put_back(
    config: str, back: str, under_way: str
) -> None:
    shut = replace(MYSQL, source=Opened(True, True))
    forth = put_back_refusals(shut, config, back, is_back=False)
    assert bool(forth) == (under_way == "back")
    reverse = put_back_refusals(shut, back, config, is_back=True)
    assert bool(reverse) == (under_way == "forth")
    assert all("leave out --back" in str(each) for each in reverse)
    # Before anybody is shut out, what was switched last is no sign.
    assert put_back_refusals(MYSQL, "", BY_A_SWITCH, is_back=False) == []


def test_a_source_that_replicates_itself_is_refused() -> None:
    row: dict[str, Value] = {"Channel_Name": "east", "Source_Host": "db0", "Source_Port": 3306}
    runs = replica_status({**row, "Replica_SQL_Running": "Yes"})
    (refused,) = own_replica_refusals("db1", [runs, replica_status(row)])
    assert "channel 'east', from db0:3306" in str(refused)


@pytest.mark.parametrize(
    ("status", "delay", "expected"),
    [
        (None, 0, "does not run"),
        (Status("running", "a", "b", lag_seconds=0.1), 60, "delay"),
        (Status("connecting", "a", "b", last_error="gone"), 0, "connecting: gone"),
        (Status("running", "a", "b", lag_seconds=None), 0, "not connected"),
        (Status("running", "a", "b", lag_seconds=7.0), 0, "7.0 s behind"),
        (Status("running", "a", "b", lag_seconds=0.1), 0, ""),
    ],
)
def test_a_daemon_has_to_be_ready(status: Status | None, delay: int, expected: str) -> None:
    found = daemon_refusals("there.toml", status, delay, 5.0)
    assert expected in " ".join(map(str, found))
    assert bool(found) == bool(expected)


def test_who_may_write_now_has_to_be_as_expected() -> None:
    assert opened_differences(Opened(False, False), Opened(True, False)) == []
    strange = opened_differences(Opened(True, True), Opened(False, None))
    assert [each.name for each in strange] == ["source_read_only", "target_writable"]


def test_what_would_be_cut_off_is_named() -> None:
    rows: list[dict[str, Value]] = [
        {"Id": 1, "User": "app", "Command": "Query", "Time": 9, "Info": "UPDATE t SET a = 1"},
        {"Id": 2, "User": "app", "Command": "Sleep", "Time": 9, "Info": None},
        {"Id": 3, "User": "app", "Command": "Sleep", "Time": 9, "Info": None},
        {"Id": 4, "User": "dba", "Command": "Query", "Time": 0, "Info": "/* x */ alter table t"},
        {"Id": 5, "User": "repl", "Command": "Binlog Dump GTID", "Time": 99, "Info": None},
        {"Id": 6, "User": "event_scheduler", "Command": "Daemon", "Time": 99, "Info": None},
        {"Id": 7, "User": "root", "Command": "Query", "Time": 0, "Info": "SHOW PROCESSLIST"},
    ]
    sessions = sessions_of(rows, frozenset({7}))
    assert [each.id for each in sessions] == [1, 2, 3, 4]
    writers = Writers(tuple(sessions), frozenset({2}), 1)
    assert writers.open == (ServerSession(2, "app", "", 9),)
    long, definitions, prepared = cut_off(writers, 5)
    assert long.text.startswith("2 sessions run for long on the source: app, session 1")
    assert "alter table t" in definitions.text
    assert prepared.name == "prepared_on_source"
    assert cut_off(Writers((sessions[1],), frozenset(), None), 5) == []


def test_accounts_need_on_the_target_what_they_have_on_the_source() -> None:
    app = privileges_in(
        ["GRANT USAGE ON *.* TO `app`@`%`", "GRANT SELECT, INSERT (a, b) ON `shop`.* TO `app`@`%`"]
    )
    assert app == {("SELECT", "`shop`.*"), ("INSERT (a, b)", "`shop`.*")}
    less = privileges_in(["GRANT SELECT ON `shop`.* TO `app`@`%`", "GRANT `r`@`%` TO `app`@`%`"])
    everything = privileges_in(["GRANT ALL PRIVILEGES ON *.* TO `app`@`%` WITH GRANT OPTION"])
    for held, expected in ((app, ""), (everything, ""), (less, "lacks INSERT (a, b) ON `shop`.*")):
        found = lacking({"'app'@'%'": app}, {"'app'@'%'": held}, same_family=True)
        assert expected in " ".join(map(str, found))
        assert bool(found) == bool(expected)
    (missing,) = lacking({"'app'@'%'": app}, {}, same_family=False)
    assert "'app'@'%' is not there" in missing.text
    assert lacking({"'app'@'%'": app}, {"'app'@'%'": less}, same_family=False) == []


def test_what_would_be_on_one_server_only_is_named() -> None:
    assert filtered([("there", FilterSettings())]) == []
    (found,) = filtered([("there", FilterSettings()), ("back", FilterSettings(do_db=("a",)))])
    assert found.text.startswith("[filter] of back has do_db = ['a']: ")
    assert more_sources([], []) == []
    row: dict[str, Value] = {"Channel_Name": "east", "Source_Host": "db0", "Source_Port": 3306}
    (found,) = more_sources([replica_status(row)], ["west"])
    assert "reads from db0:3306 (channel 'east'); mtsd's channel 'west'" in found.text
    # A definer without such a right is stopped by read_only.
    events = (Event("`a`.`e`", "root@%"), Event("`a`.`f`", "app@%"), Event("`a`.`g`", "gone@%"))
    may = {"root@%": privileges_in(["GRANT SUPER ON *.* TO x"]), "app@%": privileges_in([])}
    (found,) = events_that_go_on(events, may)
    assert "`a`.`e` of root@%;" in found.text
    assert events_that_go_on(events[1:], may) == []
