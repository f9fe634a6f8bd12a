"""Transactions of statements that are applied together, and what keeps others apart."""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pymysql
import pytest
from pymysql.cursors import Cursor

from mtsd.model.fault_points import FaultPoint
from mtsd.model.gtid import GtidSet
from tests.fix_daemon import NEEDS_PERSON, SIGKILLED, assert_none_in_doubt, catch_up, command
from tests.fix_families import pair_of
from tests.load.compare import differences
from tests.load.equality import unequal
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, NO_GTIDS, Server
from tests.servers.pair import Pair
from tests.servers.provision import Options

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]
LONG = pytest.mark.long
STATEMENT: Options = {"binlog_format": "STATEMENT", "log_bin_trust_function_creators": 1}
ONE: dict[str, Value] = {"replica.parallel_workers": 1, "replica.checkpoint_period": 0.05}
STATES = {
    "sql_mode": (
        "''", "'STRICT_ALL_TABLES'", "'ANSI_QUOTES'", "'NO_BACKSLASH_ESCAPES'", "'PIPES_AS_CONCAT'",
        "'NO_AUTO_VALUE_ON_ZERO'", "'STRICT_TRANS_TABLES,ANSI_QUOTES,IGNORE_SPACE'",
    ),
    "time_zone": ("'+00:00'", "'+05:30'", "'-08:00'"),
    "character_set_client": ("utf8mb4", "latin1", "gbk", "sjis", "binary"),
    "collation_connection": ("utf8mb4_general_ci", "latin1_german1_ci", "utf8mb4_bin"),
    "auto_increment_increment": ("1", "7"),
    "auto_increment_offset": ("1", "3"),
    "foreign_key_checks": ("0", "1"),
    "unique_checks": ("0", "1"),
    "sql_auto_is_null": ("0", "1"),
    "lc_time_names": ("'en_US'", "'de_DE'"),
    "timestamp": ("DEFAULT", "1000000000.25"),
}  # fmt: skip
STATEMENTS = (
    "INSERT INTO {t} (s, at) VALUES ('plain {n}', NOW())",
    "INSERT INTO {t} (s) VALUES ('a\\'b{n}')",
    "INSERT INTO {t} (s, f) SELECT CONCAT(s, '.'), f FROM {t} WHERE id = 1 -- a comment",
    "INSERT INTO {t} (s) VALUES ('{n}') # ; another",
    "INSERT INTO {t} (s) VALUES ('a;b -- c'), ('/* d')",
    "insert into {t} (s, f) values (LAST_INSERT_ID(), RAND())",
    "INSERT INTO {t} (s, at) VALUES (DATE_FORMAT(NOW(), '%W %M'), FROM_UNIXTIME({n}))",
    "INSERT INTO {t} (s, f) VALUES (@v, @w)",
    "INSERT INTO {t} (s) VALUES (@`x y`)",
    "INSERT INTO {t} (s) VALUES (CONNECTION_ID())",
    "INSERT INTO {t} (s) VALUES (@@Pseudo_thread_id)",
    "/* first */ UPDATE {t} SET f = f + 1 WHERE id = {n}",
    "UPDATE {t} SET f = IFNULL(f, 0) * 2 + {n}, at = NOW()",
    "UPDATE {t} SET s = CONCAT(s, '\u00e9') WHERE id % 3 = {n} % 3",
    "DELETE FROM {t} WHERE id = {n}",
    "REPLACE INTO {t} (id, s) VALUES ({n}, 'replaced')",
    "REPLACE INTO {t} SET id = {n}, s = DATABASE()",
    "/* first */ INSERT INTO {t} (s) VALUES (CONCAT(SCHEMA(), '{n}')), (DATABASE())",
    "INSERT IGNORE INTO {t} (id, s) VALUES ({n}, 'ignored'), (1, 'ignored')",
    "INSERT INTO {t} (id, s) VALUES ({n}, 'x') ON DUPLICATE KEY UPDATE f = IFNULL(f, 0) + 1",
)
OF_MYSQL = (
    "WITH c AS (SELECT 1 i) UPDATE {t} SET f = f - 1 WHERE id IN (SELECT i FROM c)",
    # On a MariaDB it depends on what the session has found before.
    "UPDATE {t} SET f = {n} WHERE id IS NULL",
)


def prepare(server: Server) -> None:
    server.sql(
        "CREATE DATABASE a; CREATE DATABASE `b``c`;"
        "CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(200), f DOUBLE,"
        " at TIMESTAMP NULL, KEY (s(20))) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci;"
        "CREATE TABLE `b``c`.t LIKE a.t; INSERT INTO a.t (s, f) VALUES ('one', 1)"
    )


def write(server: Server, transactions: int, seed: str, statements: Sequence[str]) -> None:
    """Commit transactions of a few sessions, each of which is now in one state, now in another."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        cursors: list[Cursor] = []
        for _ in range(3):
            client = stack.enter_context(closing(server.client()))
            cursors.append(stack.enter_context(client.cursor()))
        for _ in range(transactions):
            cursor = chance.choice(cursors)
            if chance.random() < 0.3:
                name = chance.choice(list(STATES))
                cursor.execute(f"SET {name} = {chance.choice(STATES[name])}")
                cursor.execute("SET @v = %s, @`x y` = NULL", (chance.choice(("v", "é", 5)),))
                cursor.execute(f"SET @w = {chance.choice(('1.5', '2e0', 'NULL', '-3'))}")
            database = chance.choice(("`a`", "`b``c`"))
            named = chance.random() < 0.5
            if not named:
                cursor.execute(f"USE {database}")
            cursor.execute("BEGIN")
            try:
                for _ in range(chance.randint(1, 3)):
                    text = chance.choice(statements)
                    table = f"{database}.t" if named else "t"
                    cursor.execute(text.format(t=table, n=chance.randint(2, 60)).encode())
            except pymysql.Error:
                # In a strict mode, or text that is none in the session's character set.
                cursor.execute("ROLLBACK")
            else:
                cursor.execute("COMMIT")


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Pair({**GTIDS, **STATEMENT}, {**GTIDS, "log_bin_trust_function_creators": 1}) as pair:
        yield pair


def sets_of(server: Server) -> int:
    """Return how many SET statements the server has run."""
    ((_, count),) = server.sql("SHOW GLOBAL STATUS LIKE 'Com\\_set\\_option'")
    return int(str(count))


def combined(daemon: DaemonProcess) -> bool:
    """Return whether some groups have shared a transaction."""
    status = daemon.status()
    assert status is not None
    return sum(each.transactions for each in status.workers) < sum(
        each.groups for each in status.workers
    )


def one_by_one(server: Server, count: int, *, at: int = 0) -> None:
    """Commit transactions with consecutive numbers, which must not be applied twice."""
    with closing(server.client("a")) as client, client.cursor() as cursor:
        for number in range(at, at + count):
            cursor.execute("BEGIN")
            cursor.execute(f"INSERT INTO t VALUES ({number}, 0)")
            cursor.execute("UPDATE counter SET n = n + 1")
            cursor.execute("COMMIT")


COUNTED = (
    "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v INT);"
    "CREATE TABLE a.counter (n INT); INSERT INTO a.counter VALUES (0)"
)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("9.7", "9.7"),
        ("11.8", "11.8"),
        pytest.param("11.8", "9.7", marks=LONG),
        pytest.param("9.7", "11.8", marks=LONG),
        pytest.param("10.11", "10.11", marks=LONG),
    ],
)
@pytest.mark.parametrize("seed", ["one", *(pytest.param(str(n), marks=LONG) for n in range(10))])
def test_sessions_of_all_kinds(source: str, target: str, seed: str, tmp_path: Path) -> None:
    with pair_of(source, target) as pair:
        prepare(pair.source)
        statements = STATEMENTS + OF_MYSQL if source == target == "9.7" else STATEMENTS
        write(pair.source, 250, f"{source} {target} {seed}", statements)
        with DaemonProcess(pair.source, pair.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0, daemon.last_words()
        assert unequal(pair.source, pair.target) == []


@pytest.mark.parametrize("policy", ["database", "logical_clock", "row"])
@pytest.mark.parametrize("consistency", ["partition", "any_time"])
def test_they_share_transactions(pair: Pair, policy: str, consistency: str, tmp_path: Path) -> None:
    pair.source.sql(COUNTED)
    one_by_one(pair.source, 100)
    settings = {"replica.parallel_type": policy, "replica.consistency": consistency}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        assert combined(daemon)
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_those_that_change_no_row_share_transactions_too(pair: Pair, tmp_path: Path) -> None:
    """A source ends them like transactions on tables that have none."""
    pair.source.sql(COUNTED)
    with DaemonProcess(pair.source, pair.target, tmp_path, ONE) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
        with ExitStack() as stack:
            cursors: list[Cursor] = []
            for _ in range(2):
                client = stack.enter_context(closing(pair.source.client("a")))
                client.autocommit(True)
                cursors.append(stack.enter_context(client.cursor()))
                cursors[-1].execute("SET NAMES latin1")
                cursors[-1].execute("SET timestamp = 1000000000")
            for number in range(200):
                cursor = cursors[number % 2]
                cursor.execute(f"UPDATE t SET v = 1 WHERE id = {number - 1}")
                cursor.execute(f"DELETE FROM t WHERE id = {1000 + number}")
                cursor.execute(f"INSERT INTO t VALUES ({number}, 0)")
        before = sets_of(pair.target)
        daemon.start()
        daemon.wait_until_caught_up()
        status = daemon.status()
        assert status is not None
        (worker,) = status.workers
        assert worker.transactions < worker.groups / 10
        assert daemon.stop() == 0
    # Between 600 statements of two sessions in one state, which is not mtsd's own, nothing is set.
    assert sets_of(pair.target) - before < 300
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("kill", [0, 5, 20, 40])
def test_tables_without_transactions_among_them(kill: int, tmp_path: Path) -> None:
    """Others share transactions around them; each of theirs is applied by itself, with a record."""
    with Pair({**GTIDS, **STATEMENT}, GTIDS) as pair:
        pair.source.sql(f"{COUNTED}; CREATE TABLE a.m (id INT PRIMARY KEY, v INT) ENGINE = MyISAM")
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE)
        catch_up(daemon)
        with closing(pair.source.client("a")) as client, client.cursor() as cursor:
            client.autocommit(True)
            for number in range(150):
                cursor.execute(f"INSERT INTO t VALUES ({number}, 0)")
                cursor.execute("UPDATE counter SET n = n + 1")
                cursor.execute(f"DELETE FROM t WHERE id = {1000 + number}")
                if number % 5 == 0:
                    cursor.execute(f"INSERT INTO m VALUES ({number}, 0)")
        daemon.start(fault=f"{FaultPoint.STATEMENT_SENT}:{kill}" if kill else "")
        if kill:
            assert daemon.wait() == SIGKILLED
            killed_in = pair.target.sql("SELECT Kind FROM mtsd.slave_in_doubt")
            assert killed_in in ([], [("non_transactional",)])
            for (number,) in pair.target.sql("SELECT Group_number FROM mtsd.slave_in_doubt"):
                # Its one statement was sent, and the target has carried it out.
                command(daemon, "resolve", "--group", str(number), "--applied")
            daemon.start()
        daemon.wait_until_caught_up()
        assert combined(daemon)
        assert daemon.stop() == 0
        assert differences(pair.source, pair.target) == []


def test_none_share_a_transaction_with_batch_groups_1(pair: Pair, tmp_path: Path) -> None:
    pair.source.sql(COUNTED)
    one_by_one(pair.source, 30)
    settings: dict[str, Value] = {"replica.batch_groups": 1}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        daemon.wait_until_caught_up()
        assert not combined(daemon)
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_gtids_are_preserved(pair: Pair, tmp_path: Path) -> None:
    pair.source.sql(COUNTED)
    one_by_one(pair.source, 30)
    with closing(pair.source.client("a")) as client, client.cursor() as cursor:
        for number in range(100, 102):
            cursor.execute("CREATE TEMPORARY TABLE w (id INT)")
            cursor.execute(f"INSERT INTO w VALUES ({number})")
            cursor.execute("INSERT INTO t SELECT id, 0 FROM w")
            client.commit()
            cursor.execute("DROP TEMPORARY TABLE w")
    with DaemonProcess(pair.source, pair.target, tmp_path, {"target.gtid": "preserve"}) as daemon:
        daemon.wait_until_caught_up()
        assert not combined(daemon)
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []
    ours, theirs = (
        GtidSet.parse(str(each.sql("SELECT @@global.gtid_executed")[0][0]))
        for each in (pair.source, pair.target)
    )
    assert not ours.minus(theirs)


POINTS = (
    FaultPoint.BEFORE_STATEMENT, FaultPoint.STATEMENT_SENT, FaultPoint.BEFORE_COMMIT,
    FaultPoint.COMMIT_SENT, FaultPoint.AFTER_COMMIT,
)  # fmt: skip


@pytest.mark.parametrize(
    "kills", [(1, 3), pytest.param((1, 2, 3, 5), marks=pytest.mark.long)], ids=["some", "all"]
)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_point(
    pair: Pair, point: FaultPoint, kills: tuple[int, ...], tmp_path: Path
) -> None:
    pair.source.sql(COUNTED)
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE)
    catch_up(daemon)
    for passes in kills:
        one_by_one(pair.source, 40, at=passes * 100)
        daemon.start(fault=f"{point}:{passes}")
        assert daemon.wait() == SIGKILLED, daemon.last_words()
        if passes == 3:
            pair.target.kill()
            pair.target.start()
    catch_up(daemon)
    assert differences(pair.source, pair.target) == []
    assert pair.target.sql("SELECT n FROM a.counter") == [(40 * len(kills),)]
    assert_none_in_doubt(pair.target)


@pytest.mark.parametrize("skips", [False, True], ids=["stops", "skips"])
def test_one_of_them_fails(pair: Pair, *, skips: bool, tmp_path: Path) -> None:
    """The error concerns that one alone: what is before it is applied, and nothing of it."""
    pair.source.sql(COUNTED)
    settings: dict[str, Value] = {**ONE, "replica.skip_errors": [1062] if skips else []}
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
    catch_up(daemon)
    pair.target.sql("INSERT INTO a.t VALUES (25, 9)")
    one_by_one(pair.source, 60)
    daemon.start()
    if skips:
        daemon.wait_until_caught_up()
        assert combined(daemon)
        assert daemon.stop() == 0
        assert pair.target.sql("SELECT n FROM a.counter") == [(59,)]
        return
    assert daemon.wait(60) == NEEDS_PERSON
    assert "error 1062" in daemon.last_words()
    assert pair.target.sql("SELECT n FROM a.counter") == [(25,)]
    assert pair.target.sql("SELECT MAX(id) FROM a.t") == [(25,)]
    pair.target.sql("DELETE FROM a.t WHERE id = 25")
    catch_up(daemon)
    assert differences(pair.source, pair.target) == []
    assert pair.target.sql("SELECT n FROM a.counter") == [(60,)]


@pytest.mark.parametrize("passes", [1, 3])
def test_a_table_without_transactions_on_the_target_alone(passes: int, tmp_path: Path) -> None:
    """Its statements are applied one by one, with a record: killed after one, the start asks."""
    with Pair({**GTIDS, **STATEMENT}, NO_GTIDS) as pair:
        pair.source.sql(COUNTED)
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE)
        catch_up(daemon)
        pair.target.sql("ALTER TABLE a.t ENGINE = MyISAM")
        one_by_one(pair.source, 10)
        daemon.start(fault=f"{FaultPoint.STATEMENT_SENT}:{passes}")
        assert daemon.wait() == SIGKILLED
        daemon.start()
        assert daemon.wait(60) == NEEDS_PERSON, daemon.last_words()
        assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_in_doubt") == [(1,)]


def test_a_table_that_has_lost_its_transactions_meanwhile(tmp_path: Path) -> None:
    """What was rolled back because of a warning has left rows: it is not applied once more."""
    with Pair({**GTIDS, **STATEMENT}, NO_GTIDS) as pair:
        pair.source.sql(COUNTED)
        with DaemonProcess(pair.source, pair.target, tmp_path, ONE) as daemon:
            one_by_one(pair.source, 1)
            daemon.wait_until_caught_up()
            pair.target.sql("ALTER TABLE a.t ENGINE = MyISAM")
            pair.source.sql(
                "BEGIN; INSERT IGNORE INTO a.t VALUES (7, 0), (7, 1);"
                "UPDATE a.counter SET n = n + 1; COMMIT"
            )
            assert daemon.wait(60) == NEEDS_PERSON, daemon.last_words()
            assert "may be half applied" in daemon.last_words() or (
                "a part of" in daemon.last_words()
            )
        assert pair.target.sql("SELECT COUNT(*) FROM mtsd.slave_in_doubt") == [(1,)]
        assert pair.target.sql("SELECT n FROM a.counter") == [(1,)]


def test_names_do_not_depend_on_the_statement_before(pair: Pair, tmp_path: Path) -> None:
    """Not even if its session's character set takes a part of a name for something else."""
    pair.source.sql(COUNTED + "; CREATE DATABASE `ЯЯ`; CREATE TABLE `ЯЯ`.n (v TEXT)")
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(pair.source.client("a"))) for _ in range(2)]
        plain, other = (stack.enter_context(client.cursor()) for client in clients)
        plain.execute("USE `ЯЯ`")
        plain.execute("SET @`Я` = 'a value'")
        other.execute("SET character_set_client = sjis")
        for number in range(40):
            other.execute(f"INSERT INTO t VALUES ({number}, 0)")
            plain.execute("INSERT INTO n VALUES (@`Я`)")
    with DaemonProcess(pair.source, pair.target, tmp_path, ONE) as daemon:
        daemon.wait_until_caught_up()
        assert combined(daemon)
        status = daemon.status()
        assert status is not None
        assert sum(each.transactions for each in status.workers) < 60
        assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


def test_a_trigger_changes_the_session(pair: Pair, tmp_path: Path) -> None:
    """It leaves its time zone behind, to its own session only."""
    pair.source.sql(
        COUNTED + "; CREATE TABLE a.z (at TIMESTAMP);"
        "CREATE TRIGGER a.g BEFORE INSERT ON a.t FOR EACH ROW SET @@session.time_zone = '+09:00'"
    )
    with closing(pair.source.client("a")) as other, other.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for number in range(20):
            one_by_one(pair.source, 1, at=number)
            cursor.execute("INSERT INTO z VALUES ('2020-01-01 12:00:00')")
    with DaemonProcess(pair.source, pair.target, tmp_path, ONE) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0, daemon.last_words()
    assert differences(pair.source, pair.target) == []


def test_statements_with_warnings(pair: Pair, tmp_path: Path) -> None:
    pair.source.sql(COUNTED + "; CREATE TABLE a.z (n TINYINT)")
    with closing(pair.source.client("a")) as client, client.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        for number in range(60):
            cursor.execute("BEGIN")
            cursor.execute(f"INSERT IGNORE INTO t VALUES ({number // 2}, 0)")
            cursor.execute("UPDATE counter SET n = n + 1")
            cursor.execute(f"INSERT INTO z VALUES ({number * 100})")
            cursor.execute("COMMIT")
    with DaemonProcess(pair.source, pair.target, tmp_path, ONE) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0, daemon.last_words()
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize("fails", [False, True])
def test_more_than_a_packet_holds(pair: Pair, *, fails: bool, tmp_path: Path) -> None:
    """Of several packets, whatever is not the first may fail, too."""
    pair.source.sql(COUNTED + "; CREATE TABLE a.large (id INT PRIMARY KEY, v LONGTEXT)")
    pair.target.sql("SET GLOBAL max_allowed_packet = 1048576")
    daemon = DaemonProcess(pair.source, pair.target, tmp_path, ONE)
    catch_up(daemon)
    if fails:
        pair.target.sql("INSERT INTO a.large VALUES (19, 'other')")
    with closing(pair.source.client("a")) as client, client.cursor() as cursor:
        for number in range(24):
            cursor.execute("BEGIN")
            cursor.execute(f"INSERT INTO large VALUES ({number}, '{number:060000}')")
            cursor.execute("UPDATE counter SET n = n + 1")
            cursor.execute("COMMIT")
    daemon.start()
    if fails:
        assert daemon.wait(60) == NEEDS_PERSON
        assert "error 1062" in daemon.last_words()
        assert pair.target.sql("SELECT n FROM a.counter") == [(19,)]
        pair.target.sql("DELETE FROM a.large WHERE id = 19")
        daemon.start()
    daemon.wait_until_caught_up()
    assert fails or combined(daemon)
    assert daemon.stop() == 0
    assert differences(pair.source, pair.target) == []


@pytest.mark.parametrize(("source", "target"), [("9.7", "9.7"), ("11.8", "11.8")])
def test_comments_behind_a_statement(source: str, target: str, tmp_path: Path) -> None:
    """A client that sends one statement at a time may end it before them."""
    with pair_of(source, target) as pair:
        pair.source.sql(COUNTED)
        with closing(pair.source.client("a")) as client, client.cursor() as cursor:
            for number in range(20):
                cursor.execute("BEGIN")
                cursor.execute(f"INSERT INTO t VALUES ({number}, LENGTH('a;b')); /* app=x; */")
                cursor.execute("UPDATE counter SET n = n + 1; -- one more")
                cursor.execute("COMMIT")
            cursor.execute("/* first */ INSERT INTO t VALUES (90, 1); # by itself")
            cursor.execute("CREATE PROCEDURE p() BEGIN DO 1; DO 2; END; -- with a body")
            cursor.execute("CREATE TABLE u (v INT DEFAULT 3); /* defined */")
        with DaemonProcess(pair.source, pair.target, tmp_path, ONE) as daemon:
            daemon.wait_until_caught_up()
            assert combined(daemon)
            assert daemon.stop() == 0, daemon.last_words()
        assert unequal(pair.source, pair.target) == []


def test_a_result_that_is_too_large_before_a_comment(pair: Pair, tmp_path: Path) -> None:
    """Its warning is not lost."""
    pair.source.sql(
        "CREATE DATABASE a; CREATE TABLE a.t (v INT, u INT);"
        "CREATE FUNCTION a.nf() RETURNS INT RETURN 1"
    )
    pair.source.sql("SET GLOBAL max_allowed_packet = 16777216")
    pair.target.sql("SET GLOBAL max_allowed_packet = 1048576")
    with closing(pair.source.client("a")) as client, client.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("INSERT INTO t VALUES (LENGTH(REPEAT('a', 3000000)), nf()); -- c")
    with DaemonProcess(pair.source, pair.target, tmp_path, ONE) as daemon:
        assert daemon.wait(60) == NEEDS_PERSON, daemon.last_words()
        assert "error 1301" in daemon.last_words()
    assert pair.target.sql("SELECT COUNT(*) FROM a.t") == [(0,)]
