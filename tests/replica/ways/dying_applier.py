"""A target, an applier that dies at a point of a group, and the one that comes after it."""

from dataclasses import dataclass, replace

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.appliers.making import applier_by_binlog
from mtsd.apply.position.fencing import fence, take_lock
from mtsd.apply.position.lock_names import LockNames
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.group import Group
from mtsd.replica.recovery.evidence import verdict
from mtsd.replica.recovery.verdict import Verdict
from mtsd.replica.ways.in_doubt import InDoubtWorker
from mtsd.schedule.done.worker_row import blank_row
from mtsd.wire.connection import Connection
from tests.apply.sending import MARK, TABLES
from tests.apply.sessions import endpoint
from tests.servers.mysqld import Server

DAEMON = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
WORKER = InDoubtWorker(1, DAEMON)
ROW = blank_row(1, MARK, 1)
LOCKS = LockNames("t", "")


@dataclass(slots=True)
class Target:
    """A target, and how a session of it applies."""

    server: Server
    logged: bool
    preserves: bool
    number: int = 0
    """That of the last group: none is used twice, as its GTIDs are used up."""

    async def applier(self) -> tuple[Applier, Connection]:
        """Open a session that holds its lock, on a target where nothing is applied."""
        settings = SessionSettings(self.logged)
        session = await TargetSession.open(endpoint(self.server), settings)
        assert await take_lock(session.connection, LOCKS.session(1), 10)
        applier = applier_by_binlog(session, TABLES, 1 << 22, preserves=self.preserves)
        return applier, session.connection

    def clean(self) -> None:
        # A server that was killed may have left it with a broken index, which DELETE needs.
        self.server.sql(
            "TRUNCATE a.m; DELETE FROM mtsd.slave_in_doubt;" + TABLES.workers.replace(ROW).decode()
        )

    def next(self, group: Group) -> Group:
        """Return the group under a number and a GTID that the target has not seen."""
        self.number += 1
        gtid = group.gtid and group.gtid._replace(number=1000 + self.number)
        return replace(group, number=self.number, gtid=gtid)

    def rows(self) -> int:
        return int(str(self.server.sql("SELECT COUNT(*) FROM a.m")[0][0]))

    def doubts(self) -> int:
        return int(str(self.server.sql("SELECT COUNT(*) FROM mtsd.slave_in_doubt")[0][0]))

    def is_recorded(self) -> bool:
        return bool(self.server.sql("SELECT Id FROM mtsd.slave_worker_info WHERE Token <> 1"))


async def verdict_of(applier: Applier, group: Group) -> Verdict:
    (row,) = await applier.session.connection.query(TABLES.doubts.select())
    doubt = TABLES.doubts.record(row)
    assert doubt.number == group.number
    return await verdict(applier.session.connection, TABLES, doubt)


class DiedError(Exception):
    """The daemon's death."""


def dying(point: FaultPoint, passes: int) -> FaultHook:
    """Return what ends the daemon when it passes a point for that time."""
    left = passes

    async def reached(passed: FaultPoint) -> None:
        nonlocal left
        left -= passed is point
        if not left:
            raise DiedError

    return reached


async def successor_of(target: Target) -> tuple[Applier, Connection]:
    """Return an applier from when nothing of the one before it goes on."""
    settings = SessionSettings(target.logged)
    session = await TargetSession.open(endpoint(target.server), settings)
    await fence(session.connection, LOCKS, [1])
    return applier_by_binlog(
        session, TABLES, 1 << 22, preserves=target.preserves
    ), session.connection
