"""The types of binlog events and the flags of their common header.

Numbers from MySQL's documented `Log_event_type` and MariaDB's knowledge base, "Replication
Protocol".
"""

import enum


class EventType(enum.IntEnum):
    """The type byte of the common header: MySQL's up to 42, MariaDB's own from 160."""

    UNKNOWN = 0
    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    PRE_GA_WRITE_ROWS = 20
    PRE_GA_UPDATE_ROWS = 21
    PRE_GA_DELETE_ROWS = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    MARIADB_ANNOTATE_ROWS = 160
    MARIADB_BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    MARIADB_START_ENCRYPTION = 164
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167
    MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168
    MARIADB_WRITE_ROWS_COMPRESSED = 169
    MARIADB_UPDATE_ROWS_COMPRESSED = 170
    MARIADB_DELETE_ROWS_COMPRESSED = 171


# Flags of the common header. Plain ints: they are tested once an event.
IN_USE = 0x1
"""In a file's FDE: the file is being written, or was when its server died."""
THREAD_SPECIFIC = 0x4
"""The statement depends on its source connection: it uses temporary tables."""
SUPPRESS_USE = 0x8
"""The statement needs no default database."""
ARTIFICIAL = 0x20
"""Made for this dump by the source: it is in no file."""
RELAY_LOG = 0x40
IGNORABLE = 0x80
"""A reader that does not know the type may pass over the event."""
NO_FILTER = 0x100
"""Replication filters do not apply."""
MTS_ISOLATE = 0x200
"""The source asks for the group to be applied alone."""


def type_name(number: int) -> str:
    """Name an event type for people; a number without a name is shown as such."""
    try:
        return EventType(number).name
    except ValueError:
        return f"type {number}"
