"""XA transactions that a test prepares on a server of either family, and those that it has."""

from contextlib import closing

from tests.fix_daemon import assert_none_in_doubt
from tests.servers.mariadb import MariadbInstallation
from tests.servers.mysqld import Server


def prepared(server: Server) -> set[tuple[object, ...]]:
    """Return the xids that the server has prepared: format, lengths of both parts, and bytes."""
    if isinstance(server.installation, MariadbInstallation):
        return {
            (format_id, gtrid, bqual, f"0x{data.hex().upper()}")
            for format_id, gtrid, bqual, data in server.sql("XA RECOVER")
        }
    return set(server.sql("XA RECOVER CONVERT XID"))


def prepare(server: Server, xid: str, *statements: str, database: str | None = None) -> None:
    """Prepare a transaction on a connection of its own, which then ends."""
    with closing(server.client(database)) as client, client.cursor() as cursor:
        for statement in (f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}"):
            cursor.execute(statement)
    server.wait_until_ended(client.thread_id())


def assert_recorded(source: Server, target: Server) -> None:
    """Check that both have the same prepared, that mtsd has noted it, and that none is in doubt."""
    assert prepared(source) == prepared(target)
    recorded = target.sql(
        "SELECT Format_id, LENGTH(Gtrid), LENGTH(Bqual),"
        " CONCAT('0x', HEX(Gtrid), HEX(Bqual)) FROM mtsd.slave_prepared_transaction"
    )
    assert set(recorded) == prepared(target)
    assert_none_in_doubt(target)
