"""A row that the target cannot take, found when a part of its transaction is on its way."""

import pytest

from mtsd.apply.rows.bundle import ENOUGH, RowTooLargeError
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.model.errors import ServerError
from mtsd.model.group import Group, GroupKind
from tests.apply.sending import Applying
from tests.apply.sessions import open_session
from tests.binlog.transactions import grouper
from tests.servers.mysqld import GTIDS
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

TABLE = "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v LONGTEXT)"


async def test_nothing_is_left_and_the_session_goes_on() -> None:
    with Pair(GTIDS, {**GTIDS, "max_allowed_packet": 1 << 20}) as pair:
        pair.source.sql(TABLE)
        pair.source.sql("INSERT INTO a.t VALUES (20000, REPEAT('z', 600000))")
        rows = ",".join(f"({number}, REPEAT('x', 7000))" for number in range(1400))
        pair.source.sql(
            f"BEGIN; INSERT INTO a.t VALUES {rows};"
            "INSERT INTO a.t VALUES (9999, REPEAT('y', 1000000)); COMMIT"
        )
        pair.source.sql("INSERT INTO a.t VALUES (10000, 'small')")
        reader = grouper()
        groups = [
            item
            for path in sorted(pair.source.datadir.glob("binlog.0*"))
            for item in reader.groups(list(FileFramer().feed(path.read_bytes())))
            if isinstance(item, Group) and item.kind is GroupKind.ROWS
        ]
        medium, large, small = groups
        assert large.size > ENOUGH
        pair.target.sql(TABLE)
        session = await open_session(pair.target)
        applying = Applying(pair.target, session, 1 << 19)
        client = b"SELECT @@character_set_client"
        # From now on the table is known, and its texts are read in another character set.
        await applying.rows([medium])
        assert await session.connection.query(client) == [("utf8mb4",)]
        with pytest.raises(RowTooLargeError) as raised:
            await applying.rows([large])
        await applying.applier.undo(raised.value, 0)
        assert await session.connection.query(client) == [("utf8mb4",)]
        assert pair.target.sql("SELECT COUNT(*) FROM a.t") == [(1,)]
        # Each answer is that of its own statement.
        with pytest.raises(ServerError):
            await session.connection.run(b"DROP TABLE a.missing", 1)
        await applying.rows([small])
        assert pair.target.sql("SELECT id FROM a.t") == [(10000,), (20000,)]
        session.connection.close()
