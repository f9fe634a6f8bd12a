"""What a statement's session means on a server of the other family."""

import struct
from dataclasses import replace

import pytest

from mtsd.apply.session.other_family import as_of
from mtsd.binlog.events.query import parse_query
from mtsd.model.errors import NotSupportedError
from mtsd.model.server import Flavour, ServerVersion
from mtsd.model.session import SessionContext
from mtsd.model.step import QueryEvent
from tests.binlog.building import query

MYSQL = ServerVersion(Flavour.MYSQL, (9, 7, 4))
MARIADB = ServerVersion(Flavour.MARIADB, (11, 8, 1))
OLD_MARIADB = ServerVersion(Flavour.MARIADB, (10, 11, 1))
STRICT = 0x200000
STATEMENT = parse_query(query(b"INSERT INTO t VALUES (1)", status=struct.pack("<BQ", 1, STRICT)))


def context(target: ServerVersion, **said: object) -> SessionContext:
    """Return what the target is told of a statement of the other family."""
    source = Flavour.MARIADB if target.flavour is Flavour.MYSQL else Flavour.MYSQL
    return as_of(with_context(**said), source, target).context


def with_context(**said: object) -> QueryEvent:
    return STATEMENT.in_session(replace(STATEMENT.context, **said))  # type: ignore[arg-type] # fields by name


def test_within_a_family_nothing_changes() -> None:
    found = with_context(sql_mode=1 << 32, collation_connection=255, sql_if_exists=True)
    for server in (MYSQL, MARIADB):
        assert as_of(found, server.flavour, server) is found


def test_fractions_are_rounded_as_on_the_source() -> None:
    truncates, rounds = 1 << 32, 1 << 34
    for at_source, at_target in ((STRICT, STRICT | rounds), (STRICT | truncates, STRICT)):
        assert context(MARIADB, sql_mode=at_source).sql_mode == at_target
    for at_source, at_target in ((STRICT, STRICT | truncates), (STRICT | rounds, STRICT)):
        assert context(MYSQL, sql_mode=at_source).sql_mode == at_target
    assert context(MYSQL, sql_mode=None).sql_mode is None


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({"sql_mode": 0x200}, "ORACLE"),
        ({"sql_mode": 1 << 32}, "EMPTY_STRING_IS_NULL"),
        ({"sql_mode": 1 << 33}, "SIMULTANEOUS_ASSIGNMENT"),
        ({"sql_if_exists": True}, "sql_if_exists"),
        ({"collation_connection": 2305}, "collation 2305"),
        ({"collation_server": 2304 + 8}, "collation 2312"),
        ({"collation_database": 609}, "collation 609"),
    ],
)
def test_what_mysql_does_not_have_is_refused(said: dict[str, object], names: str) -> None:
    with pytest.raises(NotSupportedError, match=names):
        context(MYSQL, **said)


def test_collations_of_mysql() -> None:
    for number in (8, 33, 45, 46, 224, 247, 255, 256, 278, 309):
        assert context(MARIADB, collation_connection=number).collation_connection == number
    known = {255: 2308, 278: 2311, 305: 2310, 309: 1070, 46: 46}
    for number, there in known.items():
        assert context(OLD_MARIADB, collation_server=number).collation_server == there
    with pytest.raises(NotSupportedError, match="collation 256"):
        context(OLD_MARIADB, collation_database=256)
    with pytest.raises(NotSupportedError, match="gb18030"):
        context(MARIADB, character_set_client=248)


def test_collations_of_mariadb() -> None:
    known = {
        8: 8, 45: 45, 2304: 255, 2308: 255, 2306: 305, 2307: 278, 2048: 192, 2560: 128,
        1032: 8, 1070: 309,
    }  # fmt: skip
    for number, there in known.items():
        assert context(MYSQL, collation_connection=number).collation_connection == there
    clients = {2304: 45, 2048: 33, 608: 45, 1069: 45, 1032: 8, 46: 46, 8: 8}
    for number, there in clients.items():
        assert context(MYSQL, character_set_client=number).character_set_client == there


def test_the_default_collation_of_utf8mb4() -> None:
    """Of the two that MySQL may have, that which comes closest."""
    for pairs, there in (
        (None, 45),
        (((33, 2048), (45, 2304)), 255),
        (((33, 2048), (45, 45)), 45),
        (((45, 224),), 255),
    ):
        found = context(MYSQL, character_set_collations=pairs)
        assert found.default_collation_for_utf8mb4 == there
    for target, number, expected in (
        (MARIADB, None, None),
        (MARIADB, 45, ((45, 45),)),
        (MARIADB, 255, ((45, 255),)),
        (OLD_MARIADB, 255, ((45, 2308),)),
    ):
        found = context(target, default_collation_for_utf8mb4=number)
        assert found.character_set_collations == expected
