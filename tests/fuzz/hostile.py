"""A hostile source and a hostile target, of both families: `scripts/fuzz --hostile [--seconds N]`.

A daemon runs between two real servers whose answers a proxy changes, before the login and after
it. It may only try again, or stop with one clear line: no traceback, no memory without bound. Then
the servers are honest again, and what the target holds has to be what the source does.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

from tests.fuzz.hostility import Hostility
from tests.load.journal import audit
from tests.load.mariadb import MariadbLoad, unequal_rows
from tests.replica.daemon_process import DaemonError, DaemonProcess, Value
from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair
from tests.servers.provision import Installation, Options, provide
from tests.servers.proxy import Proxy

FAMILIES: Final = (("9.7", "9.7"), ("11.8", "11.8"), ("9.7", "11.8"), ("11.8", "9.7"))
"""Source and target."""
LARGEST_MIB: Final = 450
"""Of a daemon: it has some 80, and holds one answer of 256 at most."""
_ALLOWED: Final = (0, 3)
_BUG: Final = re.compile(r"Traceback|unexpected failure|never retrieved|Fatal error|Exception in")
_SETTINGS: Final[dict[str, Value]] = {
    "source.tls": "disabled",
    "target.tls": "disabled",
    "source.connect_timeout": 1.0,
    "target.connect_timeout": 1.0,
    "source.heartbeat_period": 0.3,
    "replica.checkpoint_period": 0.1,
    "replica.stop_timeout": 5.0,
}


class Trial:
    """One seed: a pair of servers, for so many seconds hostile, then honest."""

    def __init__(self, seed: int, folder: Path, *, endless: int = 3) -> None:
        self.seed = seed
        self.source, self.target = FAMILIES[seed % len(FAMILIES)]
        self.statuses: list[int] = []
        """How daemons ended."""
        self.hostilities = [Hostility(f"{seed} {end}", endless=endless) for end in range(2)]
        # One seed in three has both of them.
        for end in range(2):
            self.hostilities[end].on = seed % 3 != end
        self._folder = folder
        self._chance = Random(seed)
        self.most_mib = 0

    def run(self, seconds: float) -> list[str]:
        """Return what is wrong, a line for each; empty if all is well."""
        with ExitStack() as stack:
            pair = stack.enter_context(
                Pair(
                    _options(self.source, 1),
                    _options(self.target, 2),
                    installation=_installed(self.source),
                    target_installation=_installed(self.target),
                )
            )
            servers = pair.source, pair.target
            proxies = [
                stack.enter_context(Proxy(server, hostility.changes))
                for server, hostility in zip(servers, self.hostilities, strict=True)
            ]
            load = MariadbLoad(pair.source, self.seed, ("ROW", "MIXED"))
            load.prepare()
            ports = {"source.port": proxies[0].port, "target.port": proxies[1].port}
            daemon = DaemonProcess(pair.source, pair.target, self._folder, {**_SETTINGS, **ports})
            stack.callback(daemon.close)
            with load.running(pause=0.05):
                problems = self._hostile(daemon, proxies, seconds)
            if problems:
                return problems
            for hostility in self.hostilities:
                hostility.on = False
            daemon.close()
            daemon.start()
            try:
                daemon.wait_until_caught_up(60)
                self.statuses.append(daemon.stop())
            except DaemonError as error:
                return [f"it does not go on between honest servers: {error}"]
            return [
                *self._looked_at(daemon),
                *audit(pair.target, load.ledger),
                *unequal_rows(pair.source, pair.target),
            ]

    def _hostile(self, daemon: DaemonProcess, proxies: list[Proxy], seconds: float) -> list[str]:
        deadline = time.monotonic() + seconds
        daemon.start()
        while time.monotonic() < deadline:
            time.sleep(0.1 + self._chance.random() * 0.4)
            if daemon.running:
                self._measure(daemon)
                if self._chance.random() < 0.15:
                    # It may be in a pause of some seconds, or wait for an answer that was left out.
                    daemon.kill()
                    daemon.start()
            else:
                self.statuses.append(daemon.wait())
                daemon.start()
            if self._chance.random() < 0.3:
                self._chance.choice(proxies).drop()
            problems = self._looked_at(daemon)
            if problems:
                return problems
        return []

    def _measure(self, daemon: DaemonProcess) -> None:
        try:
            status = Path(f"/proc/{daemon.pid}/status").read_text()
        except OSError:
            return
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        if found is not None:
            self.most_mib = max(self.most_mib, int(found[1]) >> 10)

    def _looked_at(self, daemon: DaemonProcess) -> list[str]:
        problems = [f"ended with {each}" for each in self.statuses if each not in _ALLOWED]
        if self.most_mib > LARGEST_MIB:
            problems.append(f"took {self.most_mib} MiB")
        said = daemon.log.read_text()
        bug = _BUG.search(said)
        if bug is not None:
            problems.append(said[max(0, bug.start() - 1000) : bug.end() + 4000])
        return problems


def _installed(series: str) -> Installation:
    return provide() if series == "9.7" else provide_mariadb(series)


def _options(series: str, server_id: int) -> Options:
    options: Options = GTIDS if series == "9.7" else {}
    return {**options, "server_id": server_id, "local_infile": 1}


def main() -> None:
    """Try seed after seed for as long as asked; end with status 1 at the first that fails."""
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz --hostile", description="Fuzz the answers of both servers."
    )
    parser.add_argument("--seconds", type=int, default=600, metavar="N", help="default: 600")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first; default: 0")
    parser.add_argument("--each", type=float, default=30.0, metavar="S", help="seconds a seed")
    args = parser.parse_args()
    deadline = time.monotonic() + args.seconds
    seed = args.seed
    while time.monotonic() < deadline:
        with tempfile.TemporaryDirectory(prefix="mtsd-hostile-") as folder:
            trial = Trial(seed, Path(folder))
            problems = trial.run(args.each)
        done = sum(sum(each.done.values()) for each in trial.hostilities)
        print(
            f"seed {seed}, {trial.source} to {trial.target}: {done} changes,"
            f" ended with {trial.statuses}, {trial.most_mib} MiB",
            flush=True,
        )
        if problems:
            print("\n".join(problems))
            print(f"again: scripts/fuzz --hostile --seed {seed}")
            sys.exit(1)
        seed += 1


if __name__ == "__main__":
    main()
