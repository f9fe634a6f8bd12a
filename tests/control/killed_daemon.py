"""What a killed daemon leaves in the target."""

from zlib import crc32

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_tables import ChannelRow, PositionTables
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.model.temporary_tables import NONE_OPEN
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow
from tests.servers.mysqld import Server

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def leave_behind(target: Server, channel: str) -> None:
    """Fill the tables: up to 7, then 8 and 10 are done, and 11 is in doubt."""
    tables = PositionTables("mtsd", channel)
    temporary = NONE_OPEN.opened((1, 42), ("shop", "basket"))
    mark = LowWaterMark(7, Position("binlog.000002", 700), GtidSet.parse(f"{UUID}:1-7"), temporary)
    token = crc32(channel.encode())
    former = Position("binlog.000002", 600)
    statements = [
        *tables.definitions(),
        tables.insert_channel(ChannelRow(mark, 2, UUID, UUID)),
        tables.workers.replace(
            WorkerRow(
                1,
                Position("binlog.000002", 1000),
                former,
                # Bit 0 is group 7, which the mark has passed since.
                ExecutedGroups(7).with_numbers([7, 8, 10]),
                GtidSet.parse(f"{UUID}:8:10"),
                token,
            )
        ),
        tables.workers.replace(WorkerRow(2, None, former, ExecutedGroups(8), GtidSet(), token + 1)),
        tables.doubts.insert(
            InDoubt(
                11,
                2,
                Position("binlog.000002", 1100),
                "ddl",
                f"{UUID}:11",
                f"{UUID}:11",
                "shop",
                b"ALTER TABLE shop.t ADD INDEX (a)",
            )
        ),
    ]
    target.sql(";".join(statement.decode() for statement in statements))
