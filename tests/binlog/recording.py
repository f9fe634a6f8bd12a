"""A server that has logged something of everything, and its events."""

import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mtsd.binlog.bytes.checksum import strip_checksum, verify_format_description
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.decode import Decoded, decode
from mtsd.binlog.events.payload import payload_events
from mtsd.model.position import FIRST_EVENT, Position
from tests.servers.mysqld import Server

T = TypeVar("T", bound=Decoded)

OPTIONS = {
    "binlog_row_metadata": "FULL",
    "binlog_rows_query_log_events": "ON",
    "event_scheduler": "OFF",
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
}

TAGGED = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"

TYPES = """CREATE TABLE types (
    id INT UNSIGNED AUTO_INCREMENT,
    tiny TINYINT, small SMALLINT UNSIGNED, medium MEDIUMINT, big BIGINT UNSIGNED,
    exact DECIMAL(20,5), single FLOAT, wide DOUBLE UNSIGNED, bits BIT(13), born YEAR,
    day DATE, hour TIME(3), moment DATETIME(6), instant TIMESTAMP(2) NULL,
    fixed CHAR(5) CHARACTER SET latin1, worded VARCHAR(300), raw VARBINARY(10), padded BINARY(3),
    note TINYTEXT CHARACTER SET utf16, body LONGTEXT, blobbed MEDIUMBLOB,
    choice ENUM('a', 'ü', '') CHARACTER SET latin1, picks SET('x', 'y'),
    place POINT, shape GEOMETRY, doc JSON, embedding VECTOR(3),
    derived INT AS (tiny + 1) VIRTUAL, hidden INT INVISIBLE DEFAULT 7,
    PRIMARY KEY (id, worded(10)),
    KEY multi ((CAST(doc->'$.n' AS UNSIGNED ARRAY))),
    KEY functional ((LOWER(worded)))
)"""

ROWS = (
    "INSERT INTO types (tiny, worded, choice, picks, doc, place, embedding)"
    " VALUES (-1, 'Ä', 'ü', 'x,y', '{\"n\": [1, 2], \"text\": \"long enough to be kept\"}',"
    " POINT(1, 2), TO_VECTOR('[1, 2, 3]')), (2, 'b', 'a', '', NULL, NULL, NULL)"
)


FIRST = Position("", FIRST_EVENT)


@dataclass
class Recording:
    """A running server, its binlog files, and their events (payload events: their inner ones)."""

    server: Server
    files: list[Path]
    raw: list[bytes] = field(default_factory=list)
    """Every event of the files, without checksums; format descriptions whole."""
    events: list[bytes] = field(default_factory=list)
    """The same, and behind each payload event its inner events."""
    heartbeats: list[bytes] = field(default_factory=list)
    gtid_executed: str = ""
    """At the end of the files; tests go on writing."""
    end: Position = FIRST
    """Where the heartbeats say that the source is."""

    def of(self, *types: EventType) -> list[bytes]:
        """Return the events of these types."""
        return [event for event in self.events if event[4] in types]

    def decoded(self, kind: type[T]) -> list[T]:
        """Return every event that is decoded to this class."""
        found = (decode(event) for event in self.events)
        return [event for event in found if isinstance(event, kind)]

    def samples(self) -> list[bytes]:
        """Return up to three events of each type, heartbeats included."""
        by_type: dict[int, list[bytes]] = {}
        for event in [*self.events, *self.heartbeats]:
            by_type.setdefault(event[4], []).append(event)
        return [event for events in by_type.values() for event in events[:3]]


def events_of(path: Path) -> Iterator[bytes]:
    """Yield a file's events without their checksums; its format description whole."""
    framer = FileFramer()
    for event in framer.feed(path.read_bytes()):
        if event[4] == EventType.FORMAT_DESCRIPTION_EVENT:
            verify_format_description(event)
            yield event
        else:
            yield strip_checksum(event)
    framer.finish()


def play(server: Server) -> list[Path]:
    """Run everything, and return the binlog files that hold it."""
    for statements in (_rows, _transactions, _statements, _definitions):
        statements(server)
    server.sql("FLUSH BINARY LOGS")
    files = [server.datadir / str(name) for name, *_ in server.sql("SHOW BINARY LOGS")]
    return files[:-1]


def record(server: Server) -> Recording:
    """Run everything, and read what the server has logged."""
    recording = Recording(server, play(server))
    for path in recording.files:
        for event in events_of(path):
            recording.raw.append(event)
            recording.events.append(event)
            if event[4] == EventType.TRANSACTION_PAYLOAD_EVENT:
                recording.events.extend(payload_events(event))
    ((file, offset, *_),) = server.sql("SHOW BINARY LOG STATUS")
    recording.end = Position(str(file), int(str(offset)))
    ((executed,),) = server.sql("SELECT @@gtid_executed")
    recording.gtid_executed = str(executed)
    recording.heartbeats = [_heartbeat(server, flags) for flags in (0, 2)]
    return recording


def _run(server: Server, *statements: str, database: str | None = "d1") -> None:
    with closing(server.client(database)) as client, client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _rows(server: Server) -> None:
    _run(
        server,
        *(f"CREATE DATABASE d{number}" for number in range(1, 19)),
        *(f"CREATE TABLE d{number}.many (a INT)" for number in range(1, 19)),
        database=None,
    )
    _run(
        server,
        TYPES,
        ROWS,
        "UPDATE types SET body = REPEAT('z', 3000)",
        "SET binlog_row_value_options = PARTIAL_JSON",
        "UPDATE types SET doc = JSON_SET(doc, '$.text', 'short') WHERE tiny = -1",
        "SET binlog_row_value_options = ''",
        "SET binlog_row_image = MINIMAL",
        "UPDATE types SET tiny = 5 WHERE tiny = 2",
        "SET binlog_row_image = FULL",
        "DELETE FROM types",
        "CREATE TABLE keyed (a INT PRIMARY KEY, b VARCHAR(9) COLLATE latin1_bin, c TEXT)",
        "INSERT INTO keyed VALUES (1, 'b', 'c')",
        f"CREATE TABLE wide ({', '.join(f'c{number} INT' for number in range(300))})",
        "INSERT INTO wide (c299) VALUES (1)",
        "SET unique_checks = 0, foreign_key_checks = 0",
        "INSERT INTO keyed VALUES (2, 'b', 'c')",
    )


def _transactions(server: Server) -> None:
    _run(
        server,
        "CREATE TABLE parent (a INT PRIMARY KEY)",
        "CREATE TABLE d2.child (a INT, FOREIGN KEY (a) REFERENCES d1.parent (a) ON DELETE CASCADE)",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO d2.child VALUES (1)",
        "DELETE FROM parent",
        "SET GTID_NEXT = 'AUTOMATIC:my_tag'",
        "INSERT INTO parent VALUES (3)",
        f"SET GTID_NEXT = '{TAGGED}:other:77'",
        "INSERT INTO parent VALUES (4)",
        f"SET GTID_NEXT = '{TAGGED}:1234567890123'",
        "INSERT INTO parent VALUES (5)",
        "SET GTID_NEXT = AUTOMATIC",
        "SET original_commit_timestamp = 1234567890123456",
        "SET original_server_version = 80011",
        "INSERT INTO parent VALUES (6)",
        "SET GTID_NEXT = 'AUTOMATIC:my_tag'",
        "SET original_commit_timestamp = 1234567890123457",
        "SET original_server_version = 80011",
        "INSERT INTO parent VALUES (7)",
        "SET GTID_NEXT = AUTOMATIC",
        "FLUSH BINARY LOGS",
        "SET binlog_transaction_compression = ON",
        "INSERT INTO keyed SELECT 9, 'x', REPEAT('compressible ', 1000)",
        "SET binlog_transaction_compression = OFF",
        "XA START 'gtrid', 'bqual', 3",
        "INSERT INTO parent VALUES (8)",
        "XA END 'gtrid', 'bqual', 3",
        "XA PREPARE 'gtrid', 'bqual', 3",
        "XA COMMIT 'gtrid', 'bqual', 3",
        "XA START 'one'",
        "INSERT INTO parent VALUES (9)",
        "XA END 'one'",
        "XA COMMIT 'one' ONE PHASE",
        "CREATE TABLE unsafe (a INT) ENGINE = MyISAM",
        "INSERT INTO unsafe VALUES (1)",
        "CREATE TABLE copied AS SELECT 1 AS a",
    )


def _statements(server: Server) -> None:
    (server.datadir / "load.txt").write_text("1\n2\n")
    _run(
        server,
        "CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200))",
        "SET SESSION binlog_format = STATEMENT",
        "SET @n = NULL, @i = -5, @u = CAST(18446744073709551615 AS UNSIGNED), @r = 1.5e0,"
        " @d = 1.25, @s = CONVERT('ä' USING latin1)",
        "INSERT INTO counted (v) VALUES (CONCAT_WS(',', @n, @i, @u, @r, @d)), (@s)",
        "INSERT INTO counted (v) SELECT LAST_INSERT_ID()",
        "INSERT INTO counted (v) VALUES (RAND())",
        "SET timestamp = 1700000000.125",
        "INSERT INTO counted (v) VALUES (NOW(6))",
        "SET timestamp = DEFAULT",
        f"LOAD DATA INFILE '{server.datadir}/load.txt' INTO TABLE parent",
        "BEGIN",
        "INSERT INTO counted (v) VALUES ('kept')",
        "SAVEPOINT `there`",
        "INSERT INTO counted (v) VALUES ('too')",
        "COMMIT",
        "SET enable_cascade_triggers = 1 - @@enable_cascade_triggers",
        "INSERT INTO counted (v) VALUES ('cascade')",
        "CREATE TEMPORARY TABLE passing (a INT)",
        "DROP TEMPORARY TABLE passing",
    )


def _definitions(server: Server) -> None:
    _run(
        server,
        "SET sql_auto_is_null = 1, foreign_key_checks = 0, unique_checks = 0,"
        " sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES', auto_increment_increment = 7,"
        " auto_increment_offset = 3, time_zone = '+03:00', lc_time_names = 'de_DE',"
        " sql_require_primary_key = 1, default_table_encryption = 0, collation_server = 8,"
        " collation_connection = 'utf8mb4_bin', default_collation_for_utf8mb4 = 45",
        "CREATE TABLE d2.\"tä\" (a INT PRIMARY KEY, b TIMESTAMP DEFAULT '2001-01-01')",
    )
    _run(
        server,
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "ALTER EVENT e DISABLE",
        "CREATE USER 'some'@'%'",
        "GRANT SELECT ON *.* TO 'some'@'%'",
        "ANALYZE TABLE keyed",
        "TRUNCATE keyed",
        "DROP TABLE " + ", ".join(f"d{number}.many" for number in range(1, 17)),
        "CREATE DATABASE extra",
        "CREATE TABLE d1.many (a INT)",
        "DROP TABLE d17.many, d1.many",
        *(f"CREATE TABLE d{number}.again (a INT)" for number in range(1, 18)),
        "DROP TABLE " + ", ".join(f"d{number}.again" for number in range(1, 18)),
    )


def _heartbeat(server: Server, flags: int) -> bytes:
    """Return the first heartbeat of a dump; flag 2 asks for type 41."""
    (name, offset, *_), *_ = server.sql("SHOW BINARY LOG STATUS")
    with closing(server.client()) as client:
        with client.cursor() as cursor:
            cursor.execute("SET @source_heartbeat_period = 20000000")
            cursor.execute("SET @source_binlog_checksum = 'NONE'")
        command = struct.pack("<IHI", int(offset), flags, 4001 + flags) + str(name).encode()
        client._execute_command(0x12, command)
        while True:
            event = bytes(client._read_packet().get_all_data()[1:])
            if event[4] in {EventType.HEARTBEAT_LOG_EVENT, EventType.HEARTBEAT_LOG_EVENT_V2}:
                client._force_close()
                return strip_checksum(event)
