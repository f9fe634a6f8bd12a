"""A table whose columns the target has in another order: rows as SQL go by name where names are.

The server's own replica goes by position, and so do rows that are passed on to it.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fix_daemon import NEEDS_PERSON
from tests.fix_families import families
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

MODES = (
    "", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT",
)  # fmt: skip
NAMES = ("id", 'quo"ted', "back\\slash", "`ticks`", "größe", "Select", "n")
KINDS = {"id": "INT NOT NULL", "n": "INT", "more": "INT DEFAULT 7"}
ORDERS = {
    "reversed": NAMES[::-1],
    "turned": NAMES[3:] + NAMES[:3],
    "with more": (*NAMES[4:], "more", *NAMES[:4]),
}
TEXTS = ("it''s", 'a "b" c', "`", "%", "ü", "")
"""Without a backslash, whose meaning depends on the mode."""


LEFT = 60
"""How many rows are left after all changes."""
SWAPPED = ("id", "Select", "größe", "`ticks`", "back\\slash", 'quo"ted', "n")
"""Columns of one type in another order, so that positions fit as well."""
PAIRS = [
    pytest.param(("9.7", "9.7"), id="MySQL"),
    pytest.param(("11.8", "11.8"), id="MariaDB", marks=pytest.mark.long),
    pytest.param(("11.8", "9.7"), id="MariaDB to MySQL"),
]
"""Versions of source and target."""


@pytest.fixture(scope="module", params=PAIRS)
def servers(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with families(*request.param) as pair:
        yield pair


@pytest.fixture
def pair(servers: Pair) -> Pair:
    for server in (servers.target, servers.source):
        server.sql("DROP DATABASE IF EXISTS a; DROP DATABASE IF EXISTS mtsd")
        server.reset_binlog()
    return servers


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def create(pair: Pair, order: tuple[str, ...], *, metadata: str, key: str = "PRIMARY KEY") -> None:
    """Create the table on both sides, neither of which logs that, in the order of each."""
    for server, names in ((pair.source, NAMES), (pair.target, order)):
        definitions = [f"{quoted(name)} {KINDS.get(name, 'VARCHAR(30)')}" for name in names]
        definitions += [f"{key} (id)"] if key else []
        server.sql(
            f"SET GLOBAL binlog_row_metadata = {metadata}; SET sql_log_bin = 0;"
            "CREATE DATABASE a CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;"
            f"CREATE TABLE a.t ({', '.join(definitions)})"
        )


def change(pair: Pair) -> None:
    """Insert, change and remove rows in sessions of each mode."""
    names = [quoted(name) for name in NAMES]
    with closing(pair.source.client("a")) as client, client.cursor() as cursor:
        for number, mode in enumerate(MODES):
            cursor.execute(f"SET sql_mode = '{mode}'")
            for first in range(0, 30, 10):
                rows = ",".join(
                    f"({100 * number + first + each}, '{TEXTS[each]}', X'5c275c', '\u20ac{first}',"
                    f" X'{TEXTS[each].encode().hex()}', NULL, {each})"
                    for each in range(len(TEXTS))
                )
                cursor.execute(f"INSERT INTO t VALUES {rows}")
            cursor.execute(
                f"UPDATE t SET {names[1]} = CONCAT({names[2]}, '\"', {names[1]}),"
                f" {names[5]} = '''' WHERE n IN (1, 2)"
            )
            cursor.execute("UPDATE t SET id = id + 50 WHERE id % 100 = 20 AND n = 0")
            cursor.execute("DELETE FROM t WHERE n = 4")
        client.commit()


def contents(pair: Pair, names: tuple[str, ...] = NAMES) -> list[list[tuple[object, ...]]]:
    """Return the rows of both, the source's columns in this order, the target's in the usual."""
    found = []
    for server, columns in ((pair.source, names), (pair.target, NAMES)):
        listed = ", ".join(quoted(name) for name in columns)
        found.append(sorted(server.sql(f"SELECT {listed} FROM a.t"), key=repr))
    return found


def replicate(pair: Pair, folder: Path, settings: dict[str, Value]) -> None:
    with DaemonProcess(pair.source, pair.target, folder, settings) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0


@pytest.mark.parametrize(
    ("key", "order"),
    [("PRIMARY KEY", "reversed"), ("UNIQUE KEY", "with more"), ("KEY", "turned")],
)
def test_by_name(pair: Pair, key: str, order: str, tmp_path: Path) -> None:
    create(pair, ORDERS[order], metadata="FULL", key=key)
    change(pair)
    replicate(pair, tmp_path, {"target.apply_mode": "sql", "replica.parallel_type": "row"})
    ours, theirs = contents(pair)
    assert len(ours) == LEFT
    assert theirs == ours
    if order == "with more":
        assert pair.target.sql("SELECT DISTINCT more FROM a.t") == [(7,)]


def test_by_position_without_names(pair: Pair, tmp_path: Path) -> None:
    create(pair, SWAPPED, metadata="MINIMAL")
    change(pair)
    replicate(pair, tmp_path, {"target.apply_mode": "sql"})
    ours, theirs = contents(pair, SWAPPED)
    assert len(ours) == LEFT
    assert theirs == ours


@pytest.mark.parametrize("servers", PAIRS[:2], indirect=True)
@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_passed_on_by_position(pair: Pair, metadata: str, tmp_path: Path) -> None:
    create(pair, SWAPPED, metadata=metadata)
    change(pair)
    replicate(pair, tmp_path, {"target.apply_mode": "binlog"})
    ours, theirs = contents(pair, SWAPPED)
    assert len(ours) == LEFT
    assert theirs == ours


def test_a_name_that_the_target_lacks(pair: Pair, tmp_path: Path) -> None:
    create(pair, NAMES, metadata="FULL")
    pair.target.sql("SET sql_log_bin = 0; ALTER TABLE a.t CHANGE n m INT")
    change(pair)
    settings: dict[str, Value] = {"target.apply_mode": "sql"}
    with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
        assert daemon.wait() == NEEDS_PERSON
    assert "table a.t has no column 'n' on the target" in daemon.last_words()
    assert pair.target.sql("SELECT * FROM a.t") == []
