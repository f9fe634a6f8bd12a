"""Tables of MySQL with a generated invisible primary key, whose rows BINLOG could misread.

A row event of a source without that key skips it. Whether the source has it is said by its table
maps, from 8.0.30 on. But a session that does not know the source's version only counts columns: it
takes a target with one column more for one that alone has the key, and writes every value into the
next column, without an error; other counts are "Unknown error" (1105). A server's own replica knows
the version; a session is told it before each transaction, by `immediate_server_version` (MySQL
manual, "Generated Invisible Primary Keys and Replication"; measured with 9.7).
"""

from mtsd.apply.session.family import MYSQL, TARGETS
from mtsd.apply.tables.facts import TableFacts
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.binlog.events.table_map import TableMap
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.server import ServerVersion, version_of


def needs_version(facts: TableFacts, table: TableMap, target: ServerVersion) -> bool:
    """Return whether a session has to know the source's version to read rows of a table.

    Of a table whose columns are as many as those of the events, no version is needed. A functional
    key part has a hidden column.
    """
    if not (_is_possible(target) and facts.has_generated_key):
        return False
    events = len(table.column_types) + (not table.has_generated_key)
    return len(facts.columns) + len(facts.key_parts) != events


def version_statement(format_description: bytes, target: ServerVersion) -> bytes:
    """Return the statement that tells the source's version, for one transaction.

    b"" if that means nothing to the target, or the source has no such keys.
    """
    text = parse_format_description(format_description).server_version
    version = version_of(text) or (0, 0, 0)
    if not _is_possible(target) or version < MYSQL.generates_keys_since:
        return b""
    return b"SET @@session.immediate_server_version=%d%02d%02d" % version


def too_old(table: TableMap, format_description: bytes) -> ServerError:
    """Return error 1677, of a table that `needs_version` of a source that has none to tell."""
    source = parse_format_description(format_description).server_version
    return ServerError(
        ER.SLAVE_CONVERSION_FAILED,
        "HY000",
        f"table {table.database}.{table.table} has a generated invisible primary key on the"
        f" target, and beside it other columns than on the source, whose version, {source},"
        " does not say which of them correspond. Give it the source's columns and functional"
        " indexes, or a primary key of its own (ALTER TABLE on the target)",
    )


def _is_possible(target: ServerVersion) -> bool:
    return target.number >= TARGETS[target.flavour].generates_keys_since
