"""What a statement needs of its session is set on a real server, and taken away again."""

import struct
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields

import pytest

from mtsd.apply.session.satellites import Collation
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_state import (
    PINNED,
    changes,
    context_state,
    names_collations,
    of_query,
    pinned,
)
from mtsd.apply.sql import literals
from mtsd.apply.statements.source_statements import run_statement
from mtsd.binlog.events.query import parse_query
from mtsd.model.errors import ServerError
from mtsd.model.server import Flavour, ServerVersion
from mtsd.model.session import SessionContext
from mtsd.model.step import QueryEvent, Statement, StatementKind, UserVar, UserVarType
from tests.apply.sessions import open_session
from tests.binlog.building import query
from tests.servers.mysqld import Options, Server

LATEST = ServerVersion(Flavour.MYSQL, (9, 7, 4))
OLD = ServerVersion(Flavour.MYSQL, (5, 7, 44))
MARIADB = ServerVersion(Flavour.MARIADB, (11, 8, 1))
ALL_MODES = (1 << 33) - 1

# They change by themselves, or tell of the statement before.
RESTLESS = {
    "error_count",
    "identity",
    "insert_id",
    "last_insert_id",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "statement_id",
    "timestamp",
    "warning_count",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # Globals that differ from what sources mostly have: a session must not lean on them.
    options: Options = {
        "collation_server": "latin1_swedish_ci",
        "character_set_server": "latin1",
        "default_time_zone": "+05:00",
        "sql_mode": "ANSI",
        "lc_time_names": "fr_FR",
        "auto_increment_increment": 5,
        "auto_increment_offset": 2,
    }
    with Server(options) as server:
        server.sql("CREATE DATABASE mtsd; CREATE DATABASE d CHARACTER SET utf16")
        # Time zones by name: one is enough.
        server.sql(
            "INSERT INTO mysql.time_zone VALUES (1, 'N');"
            "INSERT INTO mysql.time_zone_name VALUES ('Some/where', 1);"
            "INSERT INTO mysql.time_zone_transition_type VALUES (1, 0, 7200, 0, 'SW');"
            "INSERT INTO mysql.time_zone_transition VALUES (1, -2145916800, 0)"
        )
        yield server
        # It keeps a time zone that it has seen.
        server.discard()


@pytest.fixture
async def session(server: Server) -> AsyncIterator[TargetSession]:
    session = await open_session(server)
    yield session
    await session.connection.quit()


async def variables(session: TargetSession) -> dict[str, str]:
    rows = await session.connection.query("SHOW SESSION VARIABLES")
    return {str(name): str(value) for name, value in rows if name not in RESTLESS}


def said(
    status: bytes, statement: bytes, *, database: bytes = b"d", timestamp: int = 0
) -> QueryEvent:
    return parse_query(query(statement, status=status, database=database, timestamp=timestamp))


def statement_state(
    found: QueryEvent, server: ServerVersion, own: dict[bytes, bytes]
) -> dict[bytes, bytes]:
    return of_query(found, context_state(found.context, server, own, {}), server)


async def run(session: TargetSession, status: bytes, statement: bytes, **more: int) -> None:
    found = said(status, statement, **more)  # type: ignore[arg-type] # ints only
    await run_statement(session, Statement(found, StatementKind.OTHER, 0), statement)


async def shown(session: TargetSession, status: bytes, variable: str, **more: int) -> object:
    """Return what a statement under these status variables sees."""
    await run(session, status, f"SET @seen = @@session.{variable}".encode(), **more)
    ((value,),) = await session.connection.query("SELECT @seen")
    return value.decode() if isinstance(value, bytes) else value


def flags(value: int) -> bytes:
    return struct.pack("<BI", 0, value)


def charsets(client: int, connection: int, server: int) -> bytes:
    return struct.pack("<BHHH", 4, client, connection, server)


SEEN: list[tuple[bytes, str, object]] = [
    (flags(0), "foreign_key_checks", 1),
    (flags(0x4000000), "foreign_key_checks", 0),
    (flags(0x8000000), "unique_checks", 0),
    (flags(0x4000), "sql_auto_is_null", 1),
    (struct.pack("<BQ", 1, 0), "sql_mode", ""),
    (struct.pack("<BQ", 1, 4 | 0x200000), "sql_mode", "ANSI_QUOTES,STRICT_TRANS_TABLES"),
    (struct.pack("<BQ", 1, 0x10000200), "sql_mode", ""),
    (struct.pack("<BHH", 3, 7, 3), "auto_increment_increment", 7),
    (struct.pack("<BHH", 3, 7, 3), "auto_increment_offset", 3),
    (charsets(8, 8, 8), "character_set_client", "latin1"),
    (charsets(255, 46, 8), "collation_connection", "utf8mb4_bin"),
    (charsets(255, 46, 8), "character_set_connection", "utf8mb4"),
    (charsets(33, 33, 47), "collation_server", "latin1_bin"),
    (b"\x05\x06+03:00", "time_zone", "+03:00"),
    (b"\x05\x06SYSTEM", "time_zone", "SYSTEM"),
    (b"\x05\x0aSome/where", "time_zone", "Some/where"),
    (struct.pack("<BH", 7, 4), "lc_time_names", "de_DE"),
    (b"\x10\x00", "explicit_defaults_for_timestamp", 0),
    (struct.pack("<BH", 18, 45), "default_collation_for_utf8mb4", "utf8mb4_general_ci"),
    (struct.pack("<BH", 18, 255), "default_collation_for_utf8mb4", "utf8mb4_0900_ai_ci"),
    (b"\x13\x01", "sql_require_primary_key", 1),
    (b"\x14\x01", "default_table_encryption", 1),
    (b"\x15\x01", "enable_cascade_triggers", 1),
    (b"\x15\x00", "enable_cascade_triggers", 0),
    (b"", "pseudo_thread_id", 7),
    (b"", "sql_mode", ""),
    (b"", "time_zone", "+00:00"),
]


@pytest.mark.servers
@pytest.mark.parametrize(
    ("status", "variable", "value"), SEEN, ids=[f"{name}={value}" for _, name, value in SEEN]
)
async def test_a_statement_sees_its_session(
    session: TargetSession, status: bytes, variable: str, value: object
) -> None:
    await run(session, b"", b"DO 0")
    before = await variables(session)
    assert await shown(session, status, variable) == value
    assert await variables(session) == before


@pytest.mark.servers
async def test_everything_at_once_and_after_an_error(session: TargetSession) -> None:
    everything = b"".join(
        {status[0]: status for status, *_ in SEEN if status and b"SYSTEM" not in status}.values()
    )
    await run(session, b"", b"DO 0")
    before = await variables(session)
    await run(session, everything, b"DO 0", timestamp=5)
    assert await variables(session) == before
    for statement in (b"SELECT * FROM nowhere", b"no statement at all"):
        with pytest.raises(ServerError):
            await run(session, everything, statement)
        assert await variables(session) == before


@pytest.mark.servers
async def test_a_servers_defaults_do_not_reach_a_session(server: Server) -> None:
    hostile = {
        "completion_type": "CHAIN",
        "enable_cascade_triggers": "ON",
        "max_error_count": "0",
        "restrict_fk_on_non_standard_key": "ON",
        "show_gipk_in_create_table_and_information_schema": "OFF",
        "sql_big_selects": "OFF",
        "sql_generate_invisible_primary_key": "ON",
        "sql_notes": "OFF",
        "sql_safe_updates": "ON",
        "sql_select_limit": "1",
        "transaction_read_only": "ON",
        "xa_detach_on_prepare": "OFF",
    }
    for name, value in hostile.items():
        server.sql(f"SET GLOBAL {name} = {value}")
    try:
        session = await open_session(server)
        now = await variables(session)
        await session.connection.quit()
    finally:
        for name in hostile:
            server.sql(f"SET GLOBAL {name} = DEFAULT")
    assert {name: now[name] for name in hostile} == {
        "completion_type": "NO_CHAIN",
        "enable_cascade_triggers": "OFF",
        "max_error_count": "1024",
        "restrict_fk_on_non_standard_key": "OFF",
        "show_gipk_in_create_table_and_information_schema": "ON",
        "sql_big_selects": "ON",
        "sql_generate_invisible_primary_key": "OFF",
        "sql_notes": "ON",
        "sql_safe_updates": "OFF",
        "sql_select_limit": "18446744073709551615",
        "transaction_read_only": "OFF",
        "xa_detach_on_prepare": "ON",
    }


@pytest.mark.servers
async def test_what_the_server_does_not_know_changes_nothing(session: TargetSession) -> None:
    await run(session, b"", b"DO 0")
    before = await variables(session)
    with pytest.raises(ServerError, match="Unknown or incorrect time zone"):
        await run(session, struct.pack("<BQ", 1, 4) + b"\x05\x04Mars", b"DO 0")
    assert await variables(session) == before


@pytest.mark.servers
async def test_what_prepared_a_statement_that_cannot_run_does_not_stay(
    session: TargetSession,
) -> None:
    found = said(b"\x05\x04Mars", b"DO 0")
    variable = UserVar(b"v", UserVarType.INT, 63, struct.pack("<q", 7), unsigned=False)
    statement = Statement(found, StatementKind.OTHER, 0, (variable,))
    with pytest.raises(ServerError, match="Unknown or incorrect time zone") as refused:
        await run_statement(session, statement, b"DO 0")
    await session.undo(refused.value)
    assert await session.connection.query("SELECT @v") == [(None,)]


@pytest.mark.servers
async def test_collations_that_the_server_does_not_know(session: TargetSession) -> None:
    await run(session, b"", b"DO 0")
    before = await variables(session)
    for unknown in (charsets(999, 8, 8), charsets(8, 999, 8), charsets(8, 8, 999)):
        with pytest.raises(ServerError, match=r"Unknown (character set|collation).*999"):
            await run(session, unknown, b"DO 0")
        assert await variables(session) == before


@pytest.mark.servers
async def test_what_a_function_changes_of_its_session_does_not_stay(
    session: TargetSession,
) -> None:
    await run(session, b"", b"DO 0")
    before = await variables(session)
    for name in PINNED:
        if name != b"explicit_defaults_for_timestamp":
            await run(session, b"", b"SET @@session.%b = @@session.%b" % (name, name))
    await run(session, b"", b"SET time_zone = '-01:00', sql_select_limit = 1, completion_type = 2")
    assert await variables(session) == before


@pytest.mark.servers
async def test_the_sessions_lock_stays(session: TargetSession) -> None:
    session.states.keep_lock("mtsd:test")
    await run(session, b"", b"DO RELEASE_ALL_LOCKS()")
    ((holder,),) = await session.connection.query("SELECT IS_USED_LOCK('mtsd:test')")
    assert holder == session.connection.thread_id


@pytest.mark.servers
async def test_time(session: TargetSession) -> None:
    fraction = b"\x0d" + (125_000).to_bytes(3, "little")
    assert float(str(await shown(session, fraction, "timestamp", timestamp=1000))) == 1000.125
    assert float(str(await shown(session, b"", "timestamp", timestamp=1000))) == 1000
    ((now, clock),) = await session.connection.query(
        "SELECT UNIX_TIMESTAMP(), UNIX_TIMESTAMP(SYSDATE())"
    )
    assert isinstance(now, int)
    assert isinstance(clock, int)
    assert abs(now - clock) < 10


@pytest.mark.servers
async def test_the_pinned_state_is_what_the_server_shows(session: TargetSession) -> None:
    found = await variables(session)
    names = {name.decode() for name in pinned(session.traits.server)} - RESTLESS
    assert names <= found.keys()
    assert {name: found[name] for name in names - {"collation_server"}} == {
        "sql_mode": "",
        "time_zone": "+00:00",
        "rbr_exec_mode": "STRICT",
        "foreign_key_checks": "ON",
        "unique_checks": "ON",
        "sql_auto_is_null": "OFF",
        "auto_increment_increment": "1",
        "auto_increment_offset": "1",
        "character_set_client": "utf8mb4",
        "collation_connection": "utf8mb4_0900_ai_ci",
        "lc_time_names": "en_US",
        "explicit_defaults_for_timestamp": "ON",
        "default_collation_for_utf8mb4": "utf8mb4_0900_ai_ci",
        "sql_require_primary_key": "OFF",
        "original_server_version": "999999",
        "default_table_encryption": "OFF",
        "sql_generate_invisible_primary_key": "OFF",
        "show_gipk_in_create_table_and_information_schema": "ON",
        "enable_cascade_triggers": "OFF",
        "restrict_fk_on_non_standard_key": "OFF",
        "sql_big_selects": "ON",
        "xa_detach_on_prepare": "ON",
        "wait_timeout": "31536000",
        "net_write_timeout": "3600",
        "net_read_timeout": "3600",
        "innodb_lock_wait_timeout": "50",
        "lock_wait_timeout": "3600",
        "completion_type": "NO_CHAIN",
        "transaction_read_only": "OFF",
        "transaction_isolation": "READ-COMMITTED",
        "sql_safe_updates": "OFF",
        "sql_select_limit": "18446744073709551615",
        "max_error_count": "1024",
        "max_execution_time": "0",
        "sql_notes": "ON",
        "sql_quote_show_create": "ON",
    }
    await run(session, b"", b"DO 0")
    ((own,),) = await session.connection.query("SELECT @@pseudo_thread_id")
    assert int(str(own)) == session.thread >= 1 << 31


@pytest.mark.servers
@pytest.mark.parametrize("bit", range(33))
async def test_every_sql_mode_that_a_source_may_log(session: TargetSession, bit: int) -> None:
    # Bit 4 has no meaning: no server logs it.
    if bit != 4:
        await run(session, struct.pack("<BQ", 1, 1 << bit), b"DO 0")


def test_sql_modes_that_are_gone_are_left_out() -> None:
    found = said(struct.pack("<BQ", 1, ALL_MODES), b"")
    assert statement_state(found, OLD, pinned(OLD))[b"sql_mode"] == b"%d" % ALL_MODES
    gone = ALL_MODES & ~int(statement_state(found, LATEST, pinned(LATEST))[b"sql_mode"])
    assert gone == 0x1003FF00


def test_every_part_of_the_context_has_its_variable() -> None:
    """What a Query event says of its session is applied, or a person has decided otherwise."""
    names = {field.name for field in fields(SessionContext)}
    decided = {"collation_database"}
    state = {name.decode() for name in {**pinned(LATEST), **pinned(MARIADB)}}
    assert {"sql_auto_is_null" if name == "auto_is_null" else name for name in names} - decided <= (
        state
    )


def test_an_old_server_is_not_asked_for_new_variables() -> None:
    found = said(b"".join(status for status, *_ in SEEN[-8:]), b"")
    assert statement_state(found, OLD, pinned(OLD)).keys() == pinned(OLD).keys()
    assert pinned(OLD).keys() == PINNED.keys() | {
        b"max_execution_time",
        b"rbr_exec_mode",
        b"transaction_isolation",
        b"transaction_read_only",
    }
    newer = pinned(ServerVersion(Flavour.MYSQL, (8, 4, 0)))
    assert b"enable_cascade_triggers" not in newer
    assert b"sql_require_primary_key" in newer


def test_a_mariadb_is_asked_for_its_own_variables() -> None:
    found = said(b"".join(status for status, *_ in SEEN[-8:]), b"")
    own = pinned(MARIADB)
    assert not statement_state(found, MARIADB, own).keys() & (pinned(LATEST).keys() - PINNED.keys())
    collations = found.context.__class__(
        character_set_client=2304, collation_connection=45, character_set_collations=((45, 2304),)
    )
    state = statement_state(found.in_session(collations), MARIADB, own)
    # The same text, or it would be set before and after each statement.
    assert state[b"character_set_client"] == own[b"character_set_client"]
    assert state[b"collation_connection"] == b"45"
    assert state[b"tx_isolation"] == literals.text("REPEATABLE-READ")
    assert b"WHERE id IN (2304)" in state[b"character_set_collations"]
    older = pinned(ServerVersion(Flavour.MARIADB, (10, 11, 1)))
    assert b"character_set_collations" not in older


def test_a_mariadb_is_told_collations_by_their_names_once_they_are_known() -> None:
    own = pinned(MARIADB)
    names = {2304: Collation(b"utf8mb4_uca1400_ai_ci", b"utf8mb4")}
    context = SessionContext(collation_connection=2304, collation_server=2305)
    assert names_collations(context)
    state = context_state(context, MARIADB, own, names)
    assert state[b"collation_connection"] == literals.text("utf8mb4_uca1400_ai_ci")
    # What the target lacks is an error of that statement.
    assert b"WHERE id IN (2305)" in state[b"collation_server"]
    assert (
        b"WHERE id IN (2304)" in context_state(context, MARIADB, own, {})[b"collation_connection"]
    )
    assert not names_collations(SessionContext(collation_connection=255, collation_server=45))


def test_changes_names_what_differs_only() -> None:
    assert changes({b"a": b"1"}, {b"a": b"1"}) == b""
    assert changes({b"a": b"1", b"b": b"2"}, {b"a": b"1", b"b": b"3", b"c": b"4"}) == (
        b"SET @@session.b=3,@@session.c=4"
    )


@pytest.mark.parametrize(
    ("version", "sets"),
    [
        ((10, 5, 16), False), ((10, 5, 17), True), ((10, 6, 8), False), ((10, 6, 9), True),
        ((10, 7, 4), False), ((10, 8, 4), True), ((10, 9, 1), False), ((10, 11, 2), True),
    ],
)  # fmt: skip
def test_early_releases_of_mariadb_do_not_set_what_timestamps_default_to(
    version: tuple[int, int, int], sets: bool
) -> None:
    state = pinned(ServerVersion(Flavour.MARIADB, version))
    assert (b"explicit_defaults_for_timestamp" in state) == sets
