"""What a client does, and the groups that a source must be understood to have written for it."""

from dataclasses import dataclass, field

MANY = tuple(f"m{number:02}" for number in range(17))
FOREIGN = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"


@dataclass(frozen=True)
class Wanted:
    """A group: its kind, databases in any order, and the types of its events."""

    kind: str
    databases: tuple[str, ...] = ()
    types: tuple[int, ...] = ()
    alone: bool = False
    unsupported: str = ""
    gtid: str = ""


@dataclass(frozen=True)
class Case:
    """Statements of one session, and the groups that they become."""

    name: str
    statements: tuple[str, ...]
    wanted: tuple[Wanted, ...]
    database: str | None = "d1"
    setup: tuple[str, ...] = field(default=())
    """Statements before them; their groups do not count."""


def _rows(*databases: str, types: tuple[int, ...] = (19, 30), alone: bool = False) -> Wanted:
    return Wanted("rows", databases, types, alone)


def _ddl(*databases: str, alone: bool = False, unsupported: str = "") -> Wanted:
    return Wanted("ddl", databases, (2,), alone, unsupported)


TABLE_OPTIONS = (
    "ENGINE=InnoDB",
    "CHARSET=latin1 COLLATE=latin1_bin",
    "COMMENT='START TRANSACTION'",
    "ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=0",
    "(KEY (a)) ENGINE=InnoDB COMMENT 'x' PARTITION BY HASH (a) PARTITIONS 2",
    "(a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN MAXVALUE)",
)
_STATEMENT = ("SET binlog_format = STATEMENT",)

CASES = [
    Case(
        "databases and tables",
        (
            "CREATE DATABASE d1",
            "CREATE DATABASE d2",
            "CREATE TABLE d1.t (a INT PRIMARY KEY AUTO_INCREMENT, b TEXT)",
            "CREATE TABLE d2.t (a INT PRIMARY KEY, b TEXT)",
            "CREATE TABLE d1.m (a INT) ENGINE = MyISAM",
        ),
        (_ddl("d1"), _ddl("d2"), _ddl("d1"), _ddl("d2"), _ddl("d1")),
        database=None,
    ),
    Case("a row", ("INSERT INTO t VALUES (1, '')",), (_rows("d1"),)),
    Case(
        "several statements",
        ("BEGIN", "UPDATE t SET b = 'x'", "DELETE FROM t", "COMMIT"),
        (_rows("d1", types=(19, 31, 19, 32)),),
    ),
    Case(
        "two databases",
        ("BEGIN", "INSERT INTO d2.t VALUES (1, '')", "INSERT INTO t VALUES (2, '')", "COMMIT"),
        (_rows("d1", "d2", types=(19, 30, 19, 30)),),
    ),
    Case(
        "a statement over two tables",
        ("UPDATE d1.t, d2.t SET d1.t.b = 'y', d2.t.b = 'z'",),
        (_rows("d1", "d2", types=(19, 19, 31, 31)),),
    ),
    Case("rolled back", ("BEGIN", "INSERT INTO t VALUES (3, '')", "ROLLBACK"), ()),
    Case(
        "a part rolled back",
        (
            "BEGIN",
            "INSERT INTO t VALUES (4, '')",
            "SAVEPOINT a",
            "INSERT INTO t VALUES (5, '')",
            "ROLLBACK TO a",
            "INSERT INTO t VALUES (6, '')",
            "COMMIT",
        ),
        (_rows("d1", types=(19, 30, 19, 30)),),
    ),
    Case(
        "savepoints",
        (
            "BEGIN",
            "SAVEPOINT a",
            "INSERT INTO t VALUES (7, '')",
            "SAVEPOINT b",
            "RELEASE SAVEPOINT a",
            "INSERT INTO t VALUES (8, '')",
            "COMMIT",
        ),
        (_rows("d1", types=(19, 30, 19, 30)),),
    ),
    Case(
        "a savepoint in another database's session",
        ("BEGIN", "SAVEPOINT a", "INSERT INTO d1.t VALUES (9, '')", "COMMIT"),
        (_rows("d1"),),
        database="d2",
    ),
    Case(
        "compressed",
        (
            "SET binlog_transaction_compression = ON",
            "BEGIN",
            "INSERT INTO t VALUES (10, REPEAT('x', 50000))",
            "INSERT INTO d2.t VALUES (10, '')",
            "COMMIT",
            "CREATE TABLE small (a INT)",
        ),
        (_rows("d1", "d2", types=(19, 30, 19, 30)), _ddl("d1")),
    ),
    Case(
        "a table without transactions",
        ("INSERT INTO m VALUES (1)",),
        (Wanted("non_transactional", ("d1",), (19, 30)),),
    ),
    Case(
        "create select",
        (
            "CREATE TABLE cs AS SELECT 1 AS a",
            "CREATE TABLE none AS SELECT 1 AS a FROM m WHERE 0",
            *(
                f"CREATE TABLE cs{number} {options} SELECT 1 AS a"
                for number, options in enumerate(TABLE_OPTIONS)
            ),
        ),
        (
            Wanted("create_select", ("d1",), (2, 19, 30), alone=True),
            Wanted("create_select", ("d1",), (2,), alone=True),
            *(Wanted("create_select", ("d1",), (2, 19, 30), alone=True) for _ in TABLE_OPTIONS),
        ),
    ),
    Case(
        "foreign keys across databases",
        (
            "INSERT INTO parent VALUES (1), (2)",
            "INSERT INTO d2.child VALUES (1)",
            "DELETE FROM parent WHERE a = 2",
        ),
        (
            _rows("d1", alone=True),
            _rows("d2", alone=True),
            _rows("d1", types=(19, 32), alone=True),
        ),
        setup=(
            "CREATE TABLE parent (a INT PRIMARY KEY)",
            "CREATE TABLE d2.child (a INT, FOREIGN KEY (a) REFERENCES d1.parent (a))",
        ),
    ),
    Case(
        "more than 16 databases",
        (
            "BEGIN",
            *(f"INSERT INTO {name}.t VALUES (1)" for name in MANY),
            "COMMIT",
            "DROP TABLE " + ", ".join(f"{name}.t" for name in MANY),
        ),
        (
            _rows(*MANY, types=(19, 30) * 17),
            _ddl("d1", *MANY, alone=True),
        ),
        setup=tuple(
            statement
            for name in MANY
            for statement in (
                f"CREATE DATABASE {name}",
                f"CREATE TABLE {name}.t (a INT)",
            )
        ),
    ),
    Case(
        "DDL",
        (
            "ALTER TABLE d1.t ADD COLUMN c INT",
            "RENAME TABLE d1.small TO d2.small",
            "DROP TABLE d2.small",
            "DROP TABLE IF EXISTS d1.nowhere",
            "CREATE TABLE d2.liked LIKE d1.t",
            "TRUNCATE d2.liked",
            "CREATE VIEW d2.v AS SELECT * FROM d1.t",
            "DROP VIEW d2.v",
            "FLUSH PRIVILEGES",
        ),
        (
            _ddl("d1"),
            _ddl("d1", "d2"),
            _ddl("d2"),
            _ddl("d1"),
            _ddl("d1", "d2", alone=True),
            _ddl("d2", alone=True),
            _ddl("d1", "d2", alone=True),
            _ddl("d2"),
            _ddl(alone=True),
        ),
        database=None,
    ),
    Case(
        "the position schema",
        (
            "CREATE DATABASE mtsd",
            "CREATE TABLE mtsd.slave_worker_info (a INT PRIMARY KEY)",
            "INSERT INTO mtsd.slave_worker_info VALUES (1)",
            "BEGIN",
            "INSERT INTO d1.t VALUES (12, '', 1)",
            "UPDATE mtsd.slave_worker_info SET a = 2",
            "INSERT INTO d2.t VALUES (12, '')",
            "COMMIT",
        ),
        (
            Wanted("empty"),
            Wanted("empty"),
            Wanted("empty"),
            _rows("d1", "d2", types=(19, 30, 19, 30)),
        ),
        database=None,
    ),
    Case(
        "an empty transaction",
        (f"SET GTID_NEXT = '{FOREIGN}:5'", "BEGIN", "COMMIT"),
        (Wanted("empty", gtid=f"{FOREIGN}:5"),),
    ),
    Case(
        "a tagged GTID",
        (f"SET GTID_NEXT = '{FOREIGN}:a_tag:77'", "INSERT INTO t VALUES (13, '', 1)"),
        (Wanted("rows", ("d1",), (19, 30), gtid=f"{FOREIGN}:a_tag:77"),),
    ),
    Case(
        "XA",
        (
            "XA START 'x'",
            "INSERT INTO t VALUES (14, '', 1)",
            "XA END 'x'",
            "XA PREPARE 'x'",
            "XA COMMIT 'x'",
            "XA START 'y'",
            "INSERT INTO t VALUES (15, '', 1)",
            "XA END 'y'",
            "XA PREPARE 'y'",
            "XA ROLLBACK 'y'",
            "XA START 'z'",
            "INSERT INTO t VALUES (16, '', 1)",
            "XA END 'z'",
            "XA COMMIT 'z' ONE PHASE",
        ),
        (
            Wanted("xa_prepare", ("d1",), (19, 30)),
            Wanted("xa_complete", (), (2,)),
            Wanted("xa_prepare", ("d1",), (19, 30)),
            Wanted("xa_complete", (), (2,)),
            _rows("d1"),
        ),
    ),
    Case(
        "statements",
        (
            *_STATEMENT,
            "UPDATE t SET b = 'said'",
            "BEGIN",
            "UPDATE t SET b = 'twice'",
            "UPDATE d2.t SET b = 'there'",
            "COMMIT",
            "UPDATE d1.t, d2.t SET d1.t.b = 'both', d2.t.b = 'both'",
        ),
        (
            Wanted("statements", ("d1",), (2,)),
            Wanted("statements", ("d1", "d2"), (2, 2)),
            Wanted("statements", ("d1", "d2"), (2,)),
        ),
    ),
    Case(
        "statements and rows",
        (
            "SET binlog_format = MIXED",
            "BEGIN",
            "UPDATE t SET b = 'said'",
            "UPDATE t SET b = UUID()",
            "COMMIT",
        ),
        (Wanted("statements", ("d1",), (2, 19, 31)),),
    ),
    Case(
        "a statement on a table without transactions",
        (*_STATEMENT, "INSERT INTO m VALUES (3)"),
        (Wanted("non_transactional", ("d1",), (2,)),),
    ),
    Case(
        "satellites",
        (
            *_STATEMENT,
            "INSERT INTO t (b) VALUES ('auto')",
            "UPDATE t SET b = RAND()",
            "SET @who = 'me'",
            "UPDATE t SET b = @who",
        ),
        (
            Wanted("statements", ("d1",), (5, 2)),
            Wanted("statements", ("d1",), (13, 2)),
            Wanted("statements", ("d1",), (14, 2)),
        ),
    ),
    Case(
        "temporary tables",
        (
            *_STATEMENT,
            "CREATE TEMPORARY TABLE passing (a INT)",
            "INSERT INTO passing VALUES (1)",
            "INSERT INTO m SELECT a FROM passing",
            "TRUNCATE passing",
            "ALTER TABLE passing ADD b INT",
            "CREATE TABLE like_passing LIKE passing",
            "DROP TABLE like_passing",
            "DROP TABLE passing",
        ),
        (
            _ddl("d1"),
            Wanted("non_transactional", ("d1",), (2,)),
            Wanted("non_transactional", ("d1",), (2,)),
            _ddl("d1"),
            _ddl("d1"),
            _ddl("d1", alone=True),
            _ddl("d1"),
            _ddl("d1"),
        ),
    ),
    Case(
        "statements of a thread without temporary tables that look like those of one with",
        (
            "DELETE a FROM m a JOIN t b ON a.a = b.a",
            "DELETE FROM m WHERE a IN (SELECT a FROM t)",
            "INSERT INTO m VALUES (CONNECTION_ID())",
            "CREATE TABLE numbered SELECT CONNECTION_ID() c",
            "DROP TABLE numbered",
        ),
        (
            Wanted("non_transactional", ("d1",), (2,)),
            Wanted("non_transactional", ("d1",), (2,)),
            Wanted("non_transactional", ("d1",), (2,)),
            _ddl("d1", alone=True),
            _ddl("d1"),
        ),
        setup=_STATEMENT,
    ),
    Case(
        "temporary tables leave no trace among rows",
        (
            "CREATE TEMPORARY TABLE passing (a INT)",
            "INSERT INTO passing VALUES (500)",
            "INSERT INTO t (a) SELECT a FROM passing",
            "DROP TABLE passing",
        ),
        (_rows("d1"),),
    ),
    Case(
        "LOAD DATA",
        (*_STATEMENT, "LOAD DATA INFILE 'load.txt' INTO TABLE d2.t (a)"),
        (
            Wanted(
                "statements",
                ("d2", "d1"),
                (17, 18),
            ),
        ),
    ),
]

ANONYMOUS = [
    Case("a row without a GTID", ("INSERT INTO t VALUES (600, '', 1)",), (_rows("d1"),)),
    Case(
        "a table without transactions among others",
        ("BEGIN", "INSERT INTO t VALUES (601, '', 1)", "INSERT INTO m VALUES (2)", "COMMIT"),
        (Wanted("non_transactional", ("d1",), (19, 30)), _rows("d1")),
    ),
    Case(
        "a statement rolled back with a table without transactions",
        (
            *_STATEMENT,
            "BEGIN",
            "UPDATE t SET b = 'undone'",
            "INSERT INTO m VALUES (4)",
            "ROLLBACK",
        ),
        (Wanted("non_transactional", ("d1",), (2, 2)),),
    ),
    Case(
        "back to a savepoint with a table without transactions",
        (
            *_STATEMENT,
            "BEGIN",
            "UPDATE t SET b = 'kept'",
            "SAVEPOINT a",
            "UPDATE t SET b = 'undone'",
            "INSERT INTO m VALUES (5)",
            "ROLLBACK TO a",
            "COMMIT",
        ),
        (Wanted("statements", ("d1",), (2, 2, 2, 2, 2)),),
    ),
]
