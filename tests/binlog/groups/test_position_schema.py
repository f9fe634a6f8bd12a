"""What is done with statements that name the position schema, whatever the source lists."""

import pytest

from mtsd.binlog.events.query import parse_mysql_query
from mtsd.binlog.groups.position_schema import Treatment, treatment
from mtsd.binlog.sql.long_text import contains, contains_letters
from tests.binlog.building import query


def treated(statement: str, database: str, listed: tuple[str, ...] | None) -> Treatment:
    parsed = parse_mysql_query(query(statement.encode(), database=database.encode()))
    return treatment(parsed._replace(updated_databases=listed), "mtsd")


@pytest.mark.parametrize(
    ("statement", "database", "listed", "expected"),
    [
        ("DELETE FROM mtsd.slave_worker_info", "shop", ("mtsd",), Treatment.LEFT_OUT),
        ("DELETE FROM mtsd.slave_worker_info", "shop", ("shop",), Treatment.REFUSED),
        ("DELETE FROM `mtsd` . slave_worker_info", "shop", ("shop",), Treatment.REFUSED),
        ("DELETE FROM MTSD.slave_worker_info", "", ("mysql",), Treatment.REFUSED),
        ("DELETE FROM slave_worker_info", "mtsd", ("shop",), Treatment.REFUSED),
        ("INSERT INTO t SELECT * FROM mtsd.u", "shop", ("shop",), Treatment.APPLIED),
        ("CALL mtsd.p()", "shop", ("shop",), Treatment.REFUSED),
        ("INSERT INTO t VALUES ('mtsd.t')", "shop", ("shop",), Treatment.APPLIED),
        ("INSERT INTO t VALUES ('mtsd')", "shop", None, Treatment.APPLIED),
        ("DELETE FROM mtsd.slave_worker_info", "shop", None, Treatment.REFUSED),
        ("DELETE FROM mtsd.slave_worker_info", "", None, Treatment.LEFT_OUT),
        ("GRANT SELECT ON mtsd.* TO a", "", ("mysql",), Treatment.APPLIED),
        ("CREATE USER mtsd IDENTIFIED BY 'mtsd.x'", "", ("mysql",), Treatment.APPLIED),
    ],
)
def test_a_list_without_it_is_not_believed(
    statement: str, database: str, listed: tuple[str, ...] | None, expected: Treatment
) -> None:
    assert treated(statement, database, listed) is expected


def test_parts_of_long_texts() -> None:
    piece = 1 << 20
    for at in (0, 5, piece - 4, piece - 2, piece, 2 * piece - 1, 3 * piece - 4):
        text = bytearray(3 * piece)
        text[at : at + 4] = b"mTsD"
        assert contains_letters(bytes(text), b"mtsd")
        assert contains(bytes(text), b"mTsD")
        assert not contains(bytes(text), b"mtsd")
    assert not contains_letters(bytes(3 * piece), b"mtsd")
