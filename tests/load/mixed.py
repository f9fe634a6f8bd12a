"""A mixed load for a source: everything that a replica must carry, over several connections.

Seeded: each worker runs the same statements for the same seed, only their interleaving is chance.
Every transaction enters a number of its own into the journal of each database that it changes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from random import Random
from threading import Event, Thread

from pymysql.constants import CLIENT

from tests.load import tables
from tests.load.changes import Changes
from tests.load.columns import WIDE
from tests.load.files import write_files
from tests.load.journal import Ledger
from tests.load.mix import Mix
from tests.load.worker import Worker, send
from tests.servers.mysqld import Server

__all__ = ["Mix", "MixedLoad"]


class MixedLoad:
    """The load on `server`: databases d0, d1, …, one with an odd name, small ones e0, e1, ….

    The small ones are there for transactions of more than 16 databases, if there are any.
    `ledger` knows which transactions have committed (see journal.audit). With `tolerant`, lost
    connections do not end a run: its workers connect again, for `timeout` seconds at most. One
    server takes one load: a second would use the same numbers.
    """

    def __init__(
        self,
        server: Server,
        seed: int,
        databases: int = 4,
        connections: int = 4,
        *,
        mix: Mix | None = None,
        tolerant: bool = False,
        timeout: float = 60.0,
    ) -> None:
        if databases < 2:
            raise ValueError("some of the load needs a second database")
        self.server = server
        self.ledger = Ledger()
        self.databases = [f"d{number}" for number in range(databases)]
        self._seed = seed
        self._mix = mix or Mix()
        files = write_files(server) if self._mix.load_data else None
        self._workers = [
            Worker(
                server,
                self.ledger,
                self.databases,
                self._mix,
                seed=seed,
                number=number,
                workers=connections,
                timeout=timeout if tolerant else None,
                files=files,
            )
            for number in range(1, connections + 1)
        ]

    @property
    def committed(self) -> int:
        """Transactions that the server has said are committed, DDL not counted."""
        return sum(worker.committed for worker in self._workers)

    @property
    def definitions(self) -> int:
        """Steps of DDL that have been taken."""
        return sum(worker.definitions for worker in self._workers)

    @property
    def given_up(self) -> Counter[int]:
        """Transactions and DDL given up for a deadlock or a lost connection, by error number."""
        return sum((worker.given_up for worker in self._workers), Counter[int]())

    def prepare(self) -> None:
        """Make the databases, the tables, and a few rows in each of those with every type."""
        changes = Changes(Random(f"{self._seed} rows"), 0, 1)
        scripts = [tables.database(name) for name in self.databases]
        for name, script in zip(self.databases, scripts, strict=True):
            for table, columns in WIDE.items():
                script.append(changes.insert_wide(name, table, columns, 4))
            if self._mix.load_data:
                script.append(tables.LOADED)
            script += [
                # Zero in such a column, and dates of zero, are values like any other.
                "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
                "INSERT INTO accounts (id, name) VALUES (0, 'zero')",
                (
                    "INSERT INTO times (day, datetime_3, timestamp_2, time_0)"
                    " VALUES ('0000-00-00', '0000-00-00', '0000-00-00', '0'), (0, 0, 0, 0)"
                ),
            ]
        scripts.append(tables.odd())
        if self._mix.over_max:
            scripts.append(tables.small())
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._run_script, scripts))
        self._run_script(tables.special(self.databases[0], self.databases[-1]))

    def run(
        self,
        *,
        transactions: int | None = None,
        seconds: float | None = None,
        until: Event | None = None,
        rate: float | None = None,
    ) -> None:
        """Run until that many transactions have committed, the time is over, or `until` is set.

        `rate` caps the transactions per second. It can be called again and goes on with other
        numbers. Raises the first error of a worker, after it has set `until`: pymysql's, or
        TimeoutError where a tolerant load has waited too long for the server.
        """
        stopping = until or Event()
        deadline = None if seconds is None else time.monotonic() + seconds
        count = len(self._workers)
        errors: list[BaseException] = []

        def work(worker: Worker) -> None:
            share = None
            if transactions is not None:
                share = transactions // count + (worker.number <= transactions % count)
            try:
                worker.run(stopping, share, deadline, None if rate is None else rate / count)
            except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
                errors.append(error)
                stopping.set()

        threads = [
            Thread(target=work, args=(worker,), name=f"load-{worker.number}", daemon=True)
            for worker in self._workers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    @contextmanager
    def running(self, *, rate: float | None = None) -> Iterator[None]:
        """Run in the background while the block runs; raises the load's error at its end.

        If the load has failed, that error comes first: what the block waited for needed the load.
        """
        until = Event()
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(self.run, until=until, rate=rate)
            try:
                yield
            except BaseException as error:
                failed = run.exception() if run.done() else None
                if failed is not None:
                    raise failed from error
                raise
            finally:
                until.set()
            run.result()

    def _run_script(self, statements: Sequence[str]) -> None:
        with closing(self.server.client(flags=CLIENT.MULTI_STATEMENTS)) as client:
            send(client, statements)
