"""A source, a target, and mtsd between them under a live load; killed in the middle.

With `--spark`, the source's binary logs are then shown as DataFrames, with a plan for the load.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from mtsd.control.status import Status
from tests.load.compare import checksums, differences
from tests.load.journal import audit
from tests.load.mixed import MixedLoad
from tests.replica.daemon_process import DaemonProcess
from tests.servers.mysqld import Server
from tests.servers.pair import Pair

if TYPE_CHECKING:
    from tests.demo.dataframes import Moment

RATE = 400.0
DATABASES = 8
FIRST_S = 10
DOWN_S = 3
SECOND_S = 10
CAUGHT_UP_S = 60.0
_LONG_WAIT_S = 1.0


def say(text: str = "") -> None:
    """Print a line at once."""
    print(text, flush=True)


def rows_written(server: Server) -> int:
    """Return how many rows the server has inserted, updated and deleted since its start."""
    names = "'Innodb_rows_inserted', 'Innodb_rows_updated', 'Innodb_rows_deleted'"
    rows = server.sql(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
    return sum(int(str(value)) for _, value in rows)


class Watch:
    """Prints a line a second about the load, the daemon and the target."""

    def __init__(self, pair: Pair, load: MixedLoad, daemon: DaemonProcess) -> None:
        self._pair = pair
        self._load = load
        self._daemon = daemon
        self._began = time.monotonic()

    def head(self) -> None:
        """Print the names of the columns."""
        say(
            f"{'time':>5}  {'source':>10}  {'target':>10}  {'lag':>7}  {'pending':>7}"
            "  groups applied by each worker"
        )

    def watch(self, seconds: int) -> None:
        """Print for that long."""
        committed, rows = self._load.committed, rows_written(self._pair.target)
        for _ in range(seconds):
            since = time.monotonic()
            time.sleep(1.0)
            span = time.monotonic() - since
            now_committed, now_rows = self._load.committed, rows_written(self._pair.target)
            self._line((now_committed - committed) / span, (now_rows - rows) / span)
            committed, rows = now_committed, now_rows

    def _line(self, transactions: float, rows: float) -> None:
        status = self._daemon.status() if self._daemon.running else None
        say(
            f"{time.monotonic() - self._began:4.0f}s  {transactions:5.0f} tx/s"
            f"  {rows:5.0f} rows/s {self._of(status)}"
        )

    @staticmethod
    def _of(status: Status | None) -> str:
        if status is None:
            return "  (mtsd is not running)"
        lag = "unknown" if status.lag_seconds is None else f"{status.lag_seconds:.3f} s"
        workers = " ".join(f"{worker.groups:>5}" for worker in status.workers)
        waits = "".join(
            f", worker {worker.id} has waited {wait.seconds:.1f} s for the target: {wait.statement}"
            for worker in status.workers
            if (wait := worker.target_wait) is not None and wait.seconds >= _LONG_WAIT_S
        )
        doing = f" {status.doing}" if status.doing else ""
        return f"{lag:>8}  {status.pending_groups:>7}  {workers}{waits}{doing}"


def show_checksums(source: Server, target: Server) -> None:
    """Print a line for each database with its tables and whether their checksums are equal."""
    ours, theirs = checksums(source), checksums(target)
    by_database: dict[str, list[str]] = {}
    for table in sorted(ours.keys() | theirs.keys()):
        by_database.setdefault(table.partition(".")[0], []).append(table)
    single = [names[0] for names in by_database.values() if len(names) == 1]
    equal_single = sum(ours.get(name) == theirs.get(name) for name in single)
    for database, names in by_database.items():
        if len(names) == 1:
            continue
        equal = sum(ours.get(name) == theirs.get(name) for name in names)
        largest = max(names, key=lambda name: len(ours.get(name, "")))
        say(
            f"  {database:<20} {equal:>3} of {len(names):>3} tables equal,"
            f" {largest}: {ours.get(largest)} | {theirs.get(largest)}"
        )
    say(f"  {len(single)} databases of one table: {equal_single} equal")


def now(source: Server) -> "Moment":
    """Return what the source says of a table at its present position."""
    # Only the demonstration with Spark has Spark.
    from tests.demo.dataframes import moment  # noqa: PLC0415

    return moment(source)


def show_dataframes(source: Server, moment: "Moment") -> bool:
    """Print what Spark finds in the source's binary logs; return whether it is what was there."""
    from mtsd.spark import register  # noqa: PLC0415
    from tests.demo.dataframes import DIFFERENT, VIEWS, Logs  # noqa: PLC0415
    from tests.demo.session import quiet_session  # noqa: PLC0415

    logs = Logs(source.datadir, moment)
    size = sum(file.stat().st_size for file in logs.files)
    say(f"Spark starts; the source has {len(logs.files)} binary logs, {size / 1e6:.1f} MB")
    since = time.monotonic()
    is_same = True
    with quiet_session() as spark:
        register(spark)
        for view in VIEWS:
            for line in view(spark, logs):
                say(line)
                is_same = is_same and DIFFERENT not in line
    say(f"({time.monotonic() - since:.0f} s)")
    return is_same


def show_plan(source: Server) -> bool:
    """Print which configuration would serve such a load; return whether that could be told."""
    say("mtsd plan, for a backlog of this load: typical costs, nothing has been measured here")
    sys.stdout.flush()
    files = sorted(source.datadir.glob("binlog.[0-9]*"))
    command = [sys.executable, "-m", "mtsd", "plan", "--workers", "1,2,4,8", "--batches", "1,512"]
    return subprocess.run([*command, *map(str, files)], check=False).returncode == 0


def main() -> int:
    """Run the demonstration; returns 0 where both sides are equal at its end."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--spark", action="store_true", help="show its binary logs as DataFrames")
    with_spark = parser.parse_args().spark
    # The names of columns are there then.
    options = {"binlog_row_metadata": "FULL"} if with_spark else None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mtsd-demo-") as folder, Pair(options) as pair:
        version = pair.source.sql("SELECT VERSION()")[0][0]
        say(f"MySQL {version}: source on port {pair.source.port}, target on {pair.target.port}")
        load = MixedLoad(pair.source, seed=int(time.time()), databases=DATABASES)
        load.prepare()
        say(f"load: {RATE:.0f} transactions a second on {DATABASES} databases, DDL among them")
        stopping = Event()
        thread = Thread(target=lambda: load.run(until=stopping, rate=RATE))
        daemon = DaemonProcess(pair.source, pair.target, Path(folder), forked=False)
        try:
            daemon.start()
            since = time.monotonic()
            daemon.wait_until_caught_up(CAUGHT_UP_S)
            say(f"mtsd has made the tables on the target in {time.monotonic() - since:.1f} s")
            thread.start()
            watch = Watch(pair, load, daemon)
            watch.head()
            watch.watch(FIRST_S)
            moment = now(pair.source) if with_spark else None
            say(f"       kill -9 {daemon.pid}")
            daemon.kill()
            watch.watch(DOWN_S)
            say("       mtsd starts again and recovers")
            daemon.start()
            daemon.wait_until_running()
            watch.watch(SECOND_S)
        finally:
            stopping.set()
            if thread.is_alive():
                thread.join()
        say("       the load ends")
        daemon.wait_until_caught_up(CAUGHT_UP_S)
        say(f"       SIGTERM: exit status {daemon.stop()}")
        say("checksums, source | target:")
        show_checksums(pair.source, pair.target)
        problems = [*differences(pair.source, pair.target), *audit(pair.target, load.ledger)]
        for problem in problems:
            say(f"  DIFFERENT: {problem}")
        verdict = "different" if problems else "equal, each transaction once"
        say(
            f"{load.committed} transactions and {load.definitions} steps of DDL: {verdict}"
            f" ({time.monotonic() - began:.0f} s)"
        )
        if moment is not None and not (
            show_dataframes(pair.source, moment) and show_plan(pair.source)
        ):
            return 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
