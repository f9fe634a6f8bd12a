"""Runs switches there and back under a load, kills some, and tells what that came to."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from mtsd.operations.move.record import in_words
from mtsd.operations.move.switching import Opened, Switch, steps_of
from tests.fix_families import families
from tests.operations.move.application import ACCOUNT, Application, killed_at, wait_until
from tests.operations.move.both_ways import (
    both_ways,
    keeps_up,
    pause_in,
    switch,
    words_of,
)
from tests.operations.move.moving import ROWS, SHOP
from tests.pages.shell import Page
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

CONNECTIONS: Final = 3
"""They make some 1,000 transactions a second, if nothing holds them up."""
BETWEEN: Final = 300
"""Transactions that are let through between two switches."""
_COUNT: Final = "SELECT COUNT(*) FROM shop.orders"
_SHOWN_EVERY: Final = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many switches, and how many more that are killed, at each act."""

    times: int
    kills: int


@dataclass(slots=True)
class Tally:
    """What has been so far; pauses are in milliseconds, by the server that is switched to."""

    pauses: dict[str, list[int]] = field(default_factory=dict)
    parts: dict[str, list[int]] = field(default_factory=dict)
    """Milliseconds of each act of the pause."""
    killed: int = 0
    put_back: int = 0
    rows: int = 0
    seconds: float = 0.0
    fastest: int = 0
    """Transactions in the fastest second."""
    not_done: list[str] = field(default_factory=list)
    """What refused switches, or those that were put back, have said."""
    wrong: list[str] = field(default_factory=list)
    """What is lost, twice, or not equal."""

    def lines(self) -> list[str]:
        """Return the figures and the verdict, for a person."""
        found = [
            f"to {where}: {len(each)} switches, pause p50 {at_share(each, 0.5)} ms,"
            f" p99 {at_share(each, 0.99)} ms, highest {max(each)} ms"
            for where, each in self.pauses.items()
        ]
        found += [
            f"of that, p50 {at_share(each, 0.5)} ms, p99 {at_share(each, 0.99)} ms: {what}"
            for what, each in self.parts.items()
        ]
        if self.killed:
            gone_on = self.killed - self.put_back
            found.append(f"{self.killed} killed: {self.put_back} put back, {gone_on} gone on with")
        if self.not_done:
            found.append(f"{len(self.not_done)} not done, such as: {self.not_done[0]}")
        found.append(
            f"{self.rows:,} transactions in {self.seconds:,.0f} s, {self.rows / self.seconds:,.0f}"
            f" a second with the pauses, {self.fastest:,} in the fastest one"
        )
        return [*found, *(self.wrong or ["nothing lost, nothing twice, equal row by row"])]


def at_share(values: Sequence[int], share: float) -> int:
    """Return the value that such a share of all does not exceed.

    >>> at_share([4, 1, 3, 2], 0.5), at_share(range(1, 101), 0.99), at_share([7], 0.99)
    (2, 99, 7)
    """
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def parts_of(report: Iterable[str]) -> list[tuple[str, int]]:
    """Return the acts of a pause, in their order, with their milliseconds, by a report's lines.

    >>> parts_of((
    ...     "2026-11-28 14:00:01.000Z     starts its daemon, and waits until it stands by",
    ...     "2026-11-28 14:00:02.000Z  2. no more writes on the source: the pause begins",
    ...     "2026-11-28 14:00:02.001Z     stops the daemon of config.toml",
    ...     "2026-11-28 14:00:02.123Z  7. compare",
    ... ))
    [('stops the daemon of config.toml', 122)]
    """
    lines = [line.split("Z  ", 1) for line in report if "Z  " in line]
    times = [(datetime.fromisoformat(time), text.strip()) for time, text in lines]
    begins = next((at for at, (_, text) in enumerate(times) if text.endswith("pause begins")), 0)
    return [
        (text, round((till - since).total_seconds() * 1000))
        for (since, text), (till, _) in pairwise(times[begins:])
        if text in _ACTS
    ]


def acts_of(source: Opened) -> list[str]:
    """Return the acts of a switch from such a server as the report names them."""
    steps = steps_of(Switch("config.toml", "config.toml", source, Opened(True, False)))
    return [in_words(act) for step in steps for act in step.acts]


MOST_ACTS: Final = len(acts_of(Opened(False, False)))
_ACTS: Final = {*acts_of(Opened(False, False)), *acts_of(Opened(False, None))}


def switches(
    folder: Path, series: str, wanted: Wanted, tell: Callable[[str], None] = lambda _: None
) -> Tally:
    """Switch from a server of that series to a MySQL 9.7, and back, as often as is wanted."""
    tally = Tally()
    with _servers(series) as pair, both_ways(pair, folder) as (forth, reverse):
        pair.target.sql("SET GLOBAL read_only = ON")
        pair.source.sql(f"{SHOP}; ALTER DATABASE shop CHARACTER SET utf8mb4")
        forth.start()
        forth.wait_until_caught_up()
        for server in (pair.source, pair.target):
            server.sql(f"SET sql_log_bin = 0; {ACCOUNT}")
        rounds = _Rounds(folder, (forth, reverse), tally)
        with Application(pair.source, pair.target, connections=CONNECTIONS) as application:
            began = time.monotonic()
            for number, act in enumerate(plan := _plan(wanted)):
                rounds.one(act)
                application.wait_for(BETWEEN)
                if number % _SHOWN_EVERY == 0:
                    seconds = time.monotonic() - began
                    done = sum(map(len, tally.pauses.values()))
                    left = (len(plan) - number - 1) * seconds / (number + 1)
                    tell(
                        f"{seconds:.0f} s: {done} done, {tally.killed} killed,"
                        f" {len(tally.not_done)} not done; some {left:.0f} s left"
                    )
            tally.seconds = time.monotonic() - began
        tally.rows, tally.fastest = len(application.acknowledged), application.fastest
        tally.wrong = _wrong(pair, application.acknowledged)
        pair.discard()
    return tally


def _servers(series: str) -> Pair:
    if series == "9.7":
        return Pair(GTIDS, GTIDS)
    return families(series, "9.7", {"binlog_row_metadata": "FULL"})


def _plan(wanted: Wanted) -> list[int | None]:
    """Return the number of the act to be killed at, None: of none; spread over all."""
    kills = [act for _ in range(wanted.kills) for act in range(MOST_ACTS)]
    found: list[int | None] = []
    for number in range(max(wanted.times, len(kills))):
        if number < wanted.times:
            found.append(None)
        found += kills[number : number + 1]
    return found


class _Rounds:
    """Switches to whichever server is not written to, or kills a switch to it."""

    def __init__(
        self, folder: Path, daemons: tuple[DaemonProcess, DaemonProcess], tally: Tally
    ) -> None:
        self._folder = folder
        self._daemons = daemons
        self._tally = tally
        (_,), (self._there,), (self._back,) = Page("switch.md").steps

    def one(self, act: int | None) -> None:
        """Switch once; killed at the act with that number if there is one."""
        forth = self._daemons[0]
        is_there = not _is_read_only(forth.target)
        # On a busy machine it may be further behind than a switch lets pass.
        wait_until(partial(keeps_up, self._daemons[is_there]))
        line = self._back if is_there else self._there
        old, new = (forth.target, forth.source)[:: 1 if is_there else -1]
        if act is None:
            said = switch(line, *self._daemons, status=None)
            if "switched over: " not in said:
                self._tally.not_done.append(said.splitlines()[-1])
                if _is_read_only(old) and _is_read_only(new):
                    self._put_back(line)
                return
            where = f"{'the source' if is_there else 'the target'}, {new.installation.version}"
            self._tally.pauses.setdefault(where, []).append(pause_in(said))
            report = (self._daemons[0].folder / "report.txt").read_text(encoding="utf-8")
            for what, milliseconds in parts_of(report.splitlines()):
                self._tally.parts.setdefault(what, []).append(milliseconds)
            return
        acts = acts_of(_opened(old))
        killed_at(acts[act % len(acts)], self._folder, *words_of(line, *self._daemons))
        self._tally.killed += 1
        if _is_read_only(new):
            self._put_back(line)
            self._tally.put_back += 1

    def _put_back(self, line: str) -> None:
        """Put a switch back; once more, as it says itself, where that was not all."""
        if "put back: " not in switch(line, *self._daemons, "--put-back", status=None):
            switch(line, *self._daemons, "--put-back")


def _is_read_only(server: Server) -> bool:
    return server.sql("SELECT @@GLOBAL.read_only NOT IN ('OFF', '0')") == [(1,)]


def _opened(server: Server) -> Opened:
    has_super = bool(server.sql("SHOW VARIABLES LIKE 'super_read_only'"))
    return Opened(False, False if has_super else None)


def _wrong(pair: Pair, acknowledged: set[str]) -> list[str]:
    """Return what is lost, twice or different once both rest."""
    wait_until(lambda: pair.source.sql(_COUNT) == pair.target.sql(_COUNT))
    rows = pair.source.sql(ROWS)
    what = [each for _, each in rows]
    found = []
    if lost := acknowledged - set(what):
        found.append(f"{len(lost)} acknowledged are lost, such as {min(lost)}")
    if twice := len(what) - len(set(what)):
        found.append(f"{twice} are there twice")
    if pair.target.sql(ROWS) != rows:
        found.append("the two servers have different rows")
    return found
