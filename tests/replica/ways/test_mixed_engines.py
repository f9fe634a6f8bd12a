"""Transactions that change tables of several engines, some of which cannot be rolled back."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pymysql
import pytest

from mtsd.apply.appliers.applier import Applier
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.model.errors import ApplyError, MtsdError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultPoint, nothing
from mtsd.model.group import Group, GroupKind
from mtsd.replica.recovery.verdict import Verdict
from mtsd.replica.ways.doubtful import HalfAppliedError
from mtsd.replica.ways.in_doubt import InDoubtWorker
from mtsd.replica.ways.non_transactional import apply_unprotected
from tests.apply.sending import MARK, TABLES
from tests.binlog.transactions import grouper
from tests.fix_daemon import assert_none_in_doubt, stops
from tests.load.compare import differences
from tests.replica.daemon_process import DaemonProcess
from tests.replica.ways.dying_applier import (
    DAEMON,
    ROW,
    DiedError,
    Target,
    dying,
    successor_of,
    verdict_of,
)
from tests.servers.mysqld import GTIDS, NO_GTIDS, Options, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

TRUST: Options = {"log_bin_trust_function_creators": 1}
DEFINITIONS = (
    "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, n INT); USE a;"
    "CREATE TABLE a.m (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE = MyISAM;"
    "CREATE TABLE a.log (n INT) ENGINE = MyISAM;"
    "CREATE FUNCTION a.f(x INT) RETURNS INT BEGIN INSERT INTO m VALUES (x, 0); RETURN x; END;"
    "INSERT INTO a.t VALUES (1, 1), (2, 2)"
)
UPDATE = "UPDATE t SET n = n + 1"
INSERT = "INSERT INTO m (n) VALUES (1)"
UNSAFE_UPDATE = "UPDATE t SET n = n + LENGTH(UUID())"
UNSAFE_INSERT = "INSERT INTO m (n) VALUES (LENGTH(UUID()))"
"""In MIXED format UUID() makes them rows; its length is the same everywhere."""
LOADS: dict[str, tuple[str, ...]] = {
    "rolled back": ("BEGIN", UPDATE, INSERT, UPDATE, "ROLLBACK"),
    "committed": ("BEGIN", UPDATE, INSERT, "COMMIT"),
    "the other one first": ("BEGIN", INSERT, UPDATE, "COMMIT"),
    "the other one first, rolled back": ("BEGIN", INSERT, UPDATE, "ROLLBACK"),
    "one statement": ("UPDATE t, m SET t.n = 5, m.n = m.n + 1",),
    "one statement rolled back": ("BEGIN", "UPDATE t, m SET t.n = 6, m.n = m.n + 1", "ROLLBACK"),
    "an error half-way": ("INSERT INTO m VALUES (1000, 1), (1001, 1), (1000, 2)",),
    "an error half-way in a transaction": (
        "BEGIN", UPDATE, "INSERT INTO m VALUES (1100, 1), (1101, 1), (1100, 2)", UPDATE, "COMMIT",
    ),
    "an error half-way and rolled back": (
        "BEGIN", UPDATE, "INSERT INTO m VALUES (1200, 1), (1201, 1), (1200, 2)", "ROLLBACK",
    ),
    "a savepoint": (
        "BEGIN", UPDATE, "SAVEPOINT a", UPDATE, INSERT, "ROLLBACK TO a", UPDATE, "COMMIT",
    ),
    "a savepoint rolled back": (
        "BEGIN", UPDATE, "SAVEPOINT a", INSERT, "ROLLBACK TO a", "ROLLBACK",
    ),
    "through a function": ("BEGIN", "UPDATE t SET n = f(id + 2000)", "ROLLBACK"),
    "a function that fails": ("INSERT INTO t SELECT 5, f(3000) UNION ALL SELECT 5, f(3001)",),
    "a table that is not there": ("DROP TABLE IF EXISTS nope", "DROP TABLE log, nope"),
    "rows and statements": (
        "BEGIN", UPDATE, UNSAFE_UPDATE, INSERT, UNSAFE_INSERT, UPDATE, "COMMIT",
    ),
    "rows and statements, the other one first": (
        "BEGIN", INSERT, UNSAFE_INSERT, UNSAFE_UPDATE, UPDATE, "COMMIT",
    ),
    "rows and statements, rolled back": (
        "BEGIN", UPDATE, UNSAFE_UPDATE, INSERT, UNSAFE_INSERT, UPDATE, "ROLLBACK",
    ),
    "rows and statements, a savepoint": (
        "BEGIN", UNSAFE_UPDATE, "SAVEPOINT a", UPDATE, UNSAFE_UPDATE, INSERT, UNSAFE_INSERT,
        "ROLLBACK TO a", UPDATE, "COMMIT",
    ),
    "nothing but what is undone": ("BEGIN", UPDATE, "ROLLBACK"),
}  # fmt: skip


@pytest.mark.parametrize("binlog_format", ["STATEMENT", "MIXED", "ROW"])
def test_each_comes_to_the_same(tmp_path: Path, binlog_format: str) -> None:
    options = {**NO_GTIDS, **TRUST}
    with Pair({**options, "binlog_format": binlog_format}, options) as pair:
        pair.source.sql(DEFINITIONS)
        with closing(pair.source.client("a")) as client, client.cursor() as cursor:
            client.autocommit(True)
            for statements in LOADS.values():
                for statement in statements:
                    with suppress(pymysql.err.MySQLError):
                        cursor.execute(statement)
        assert groups_of_both(pair.source) == (3 if binlog_format == "MIXED" else 0)
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []
        assert_none_in_doubt(pair.target)


def test_what_only_the_target_can_undo_is_told(tmp_path: Path) -> None:
    """Its tables have transactions, and the source's have not: the two differ from then on."""
    options = {**NO_GTIDS, **TRUST}
    told = ("rolled back", "an error half-way", "a savepoint")
    with Pair({**options, "binlog_format": "STATEMENT"}, options) as pair:
        pair.source.sql(DEFINITIONS)
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        pair.target.sql("SET sql_log_bin = 0; ALTER TABLE a.m ENGINE = InnoDB")
        with closing(pair.source.client("a")) as client, client.cursor() as cursor:
            client.autocommit(True)
            for statements in (*(LOADS[name] for name in told), LOADS["committed"]):
                for statement in statements:
                    with suppress(pymysql.err.MySQLError):
                        cursor.execute(statement)
        with daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        warnings = [each for each in daemon.records() if "is undone" in str(each["event"])]
        assert len(warnings) == len(told)


def groups_of_both(source: Server) -> int:
    """Return how many transactions in the source's binary log have rows as well as statements."""
    found = 0
    kinds: set[str] = set()
    for _, _, event, _, _, info in source.sql("SHOW BINLOG EVENTS"):
        if (event, info) == ("Query", "BEGIN"):
            kinds = set()
        elif event == "Xid" or info in {"COMMIT", "ROLLBACK"}:
            found += kinds == {"rows", "statements"}
            kinds = set()
        elif event == "Table_map":
            kinds.add("rows")
        elif event == "Query" and not str(info).upper().startswith(("SAVEPOINT", "ROLLBACK TO")):
            kinds.add("statements")
    return found


def test_a_statement_that_was_interrupted_on_the_source(tmp_path: Path) -> None:
    """As a server's own replica: what it has left there is not known."""
    options = {**NO_GTIDS, **TRUST}
    with Pair({**options, "binlog_format": "STATEMENT"}, options) as pair:
        pair.source.sql(DEFINITIONS)
        with (
            closing(pair.source.client("a")) as client,
            closing(pair.source.client("a")) as killer,
            client.cursor() as cursor,
            killer.cursor() as kills,
        ):
            cursor.execute("INSERT INTO m (n) VALUES (1), (2), (3), (4), (5), (6), (7), (8)")
            kills.execute(
                "CREATE EVENT kill_it ON SCHEDULE AT NOW() + INTERVAL 1 SECOND DO"
                f" KILL QUERY {client.thread_id()}"
            )
            with pytest.raises(pymysql.err.MySQLError):
                cursor.execute("UPDATE m SET n = n + SLEEP(0.4)")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path)
        assert "a statement that was interrupted on the source (error 1317)" in stops(daemon)


# Each way to fail after the first effect.

WORKER = InDoubtWorker(1, DAEMON)
GROUPS = {
    "rolled back": LOADS["rolled back"],
    "committed": LOADS["committed"],
    "one statement rolled back": ("BEGIN", "UPDATE t, m SET t.n = 6, m.n = m.n + 1", "ROLLBACK"),
    "with an error": ("BEGIN", UPDATE, "INSERT INTO m VALUES (9, 1), (9, 2)", UPDATE, "COMMIT"),
}
BEFORE = "INSERT INTO a.m VALUES (5, 0)"
AFTER = {
    # Of each: the sum of t.n, which was 3, and the rows of m with the sum of their n.
    "rolled back": (3, 2, 1),
    "committed": (5, 2, 1),
    "one statement rolled back": (3, 1, 1),
    "with an error": (7, 2, 1),
}
TARGETS: dict[str, tuple[Options, bool]] = {
    "binlog": (NO_GTIDS, True),
    "not logged": (NO_GTIDS, False),
    "neither": ({**NO_GTIDS, "skip_log_bin": None}, True),
}


@pytest.fixture(scope="module")
def groups() -> dict[str, Group]:
    with Server({**NO_GTIDS, **TRUST, "binlog_format": "STATEMENT"}) as source:
        source.sql(DEFINITIONS)
        found = {}
        for name, statements in GROUPS.items():
            source.sql(f"DELETE FROM a.m; {BEFORE}; FLUSH BINARY LOGS")
            with closing(source.client("a")) as client, client.cursor() as cursor:
                client.autocommit(True)
                for statement in statements:
                    with suppress(pymysql.err.MySQLError):
                        cursor.execute(statement)
            path = max(source.datadir.glob("binlog.0*"))
            events = list(FileFramer().feed(path.read_bytes()))
            groups = [item for item in grouper().groups(events) if isinstance(item, Group)]
            (found[name],) = groups
        return found


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[] if name == "binlog" else [pytest.mark.long]) for name in TARGETS
    ],
)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    options, logged = TARGETS[request.param]
    with Server({**options, **TRUST}) as server:
        server.sql(DEFINITIONS)
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        yield Target(server, logged=logged, preserves=False)


@pytest.fixture
async def applier(target: Target) -> AsyncIterator[Applier]:
    clean(target)
    target.server.sql("DELETE FROM mtsd.slave_in_doubt;" + TABLES.workers.replace(ROW).decode())
    applier, connection = await target.applier()
    yield applier
    connection.close()


def clean(target: Target) -> None:
    target.server.sql("DELETE FROM a.m; REPLACE INTO a.t VALUES (1, 1), (2, 2);" + BEFORE)


def state(target: Target) -> tuple[int, int, int]:
    ((found,),) = target.server.sql("SELECT SUM(n) FROM a.t")
    ((count, total),) = target.server.sql("SELECT COUNT(*), SUM(n) FROM a.m")
    return int(found), int(count), int(total)


UNTOUCHED = (3, 1, 0)


async def apply(applier: Applier, group: Group) -> None:
    row = ROW.advanced((group,), MARK)
    await apply_unprotected(applier, group, row, WORKER, reached=nothing)


@pytest.mark.parametrize("kind", GROUPS)
async def test_applied_whole_and_recorded(
    target: Target, applier: Applier, groups: dict[str, Group], kind: str
) -> None:
    group = target.next(groups[kind])
    assert group.kind in {GroupKind.NON_TRANSACTIONAL, GroupKind.STATEMENTS}
    await apply(applier, group)
    assert state(target) == AFTER[kind]
    assert (target.doubts(), target.is_recorded()) == (0, True)


CONFLICTS = {
    # What is in the way, and at which of the groups it is.
    "at the first statement": "ALTER TABLE a.t RENAME COLUMN n TO other",
    "at the table without transactions": "RENAME TABLE a.m TO a.other",
    "no error where the source had one": "ALTER TABLE a.m DROP PRIMARY KEY, MODIFY id INT",
}
UNDONE = {
    "at the first statement": "ALTER TABLE a.t RENAME COLUMN other TO n",
    "at the table without transactions": "RENAME TABLE a.other TO a.m",
    "no error where the source had one": "DELETE FROM a.m WHERE id = 9",
}


@pytest.mark.parametrize("kind", GROUPS)
@pytest.mark.parametrize("conflict", CONFLICTS)
async def test_an_error_at_each_statement(
    target: Target, applier: Applier, groups: dict[str, Group], kind: str, conflict: str
) -> None:
    if conflict == "no error where the source had one" and kind != "with an error":
        return
    group = target.next(groups[kind])
    target.server.sql(CONFLICTS[conflict])
    error: MtsdError | None = None
    try:
        await apply(applier, group)
    except (HalfAppliedError, ServerError) as raised:
        error = raised
    assert not target.is_recorded()
    if isinstance(error, HalfAppliedError):
        assert target.doubts() == 1
        for _ in range(2):
            with pytest.raises(NeedsPersonError, match="mtsd resolve"):
                await verdict_of(applier, group)
    else:
        assert target.doubts() == 0
    target.server.sql(UNDONE[conflict])
    if conflict == "no error where the source had one":
        target.server.sql("ALTER TABLE a.m ADD PRIMARY KEY (id), MODIFY id INT AUTO_INCREMENT")
        assert isinstance(error, HalfAppliedError)
    elif isinstance(error, ServerError):
        assert state(target) == UNTOUCHED
    assert error is not None


POINTS = (
    (FaultPoint.BEFORE_IN_DOUBT, 1), (FaultPoint.AFTER_IN_DOUBT, 1),
    (FaultPoint.BEFORE_STATEMENT, 1), (FaultPoint.BEFORE_STATEMENT, 2),
    (FaultPoint.BEFORE_STATEMENT, 3), (FaultPoint.STATEMENT_SENT, 1),
    (FaultPoint.STATEMENT_SENT, 2), (FaultPoint.STATEMENT_SENT, 3),
    (FaultPoint.BEFORE_COMMIT, 2), (FaultPoint.COMMIT_SENT, 2), (FaultPoint.AFTER_STATEMENT, 1),
    (FaultPoint.AFTER_SETTLED, 1),
)  # fmt: skip


@pytest.mark.parametrize("kind", GROUPS)
@pytest.mark.parametrize(("point", "passes"), POINTS)
async def test_killed_at_each_point(
    target: Target,
    applier: Applier,
    groups: dict[str, Group],
    kind: str,
    point: FaultPoint,
    passes: int,
) -> None:
    group = target.next(groups[kind])
    reached = dying(point, passes)
    applier._reached = applier.session.reached = reached
    row = ROW.advanced((group,), MARK)
    with suppress(DiedError):
        await apply_unprotected(applier, group, row, WORKER, reached=reached)
    applier.session.connection.close()
    successor, connection = await successor_of(target)
    try:
        if target.is_recorded():
            assert (state(target), target.doubts()) == (AFTER[kind], 0)
        elif target.doubts():
            try:
                assert await verdict_of(successor, group) is Verdict.NOT_APPLIED
            except NeedsPersonError:
                return
            assert state(target) == UNTOUCHED
        else:
            assert state(target) == UNTOUCHED
    finally:
        connection.close()


async def test_under_a_gtid_that_is_kept_it_is_refused(
    groups: dict[str, Group],
) -> None:
    with Server({**GTIDS, **TRUST}) as server:
        server.sql(DEFINITIONS)
        for definition in TABLES.definitions():
            server.sql(definition.decode())
        target = Target(server, logged=True, preserves=True)
        applier, connection = await target.applier()
        with pytest.raises(ApplyError, match="was rolled back on the source"):
            await apply(applier, target.next(groups["rolled back"]))
        connection.close()
        assert server.sql("SELECT SUM(n) FROM a.t") == [(3,)]
        assert target.doubts() == 0
