"""Sessions on a real target, over its socket."""

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.model.fault_points import nothing
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.replica.ways.settlements import Settlements
from mtsd.schedule.batches.in_flight import InFlight
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.endpoint import Endpoint
from tests.servers.mysqld import Server


def endpoint(server: Server) -> Endpoint:
    """Return where the target is, for root."""
    return Endpoint("target", "", 0, str(server.socket), "root", "")


async def open_session(server: Server, *, binary_log: bool = True) -> TargetSession:
    """Open a session."""
    return await TargetSession.open(endpoint(server), SessionSettings(binary_log))


def settlements_of(applier: Applier, row: WorkerRow) -> Settlements:
    """Return the settlements of a worker whose row is like that, and of a mark without groups."""
    mark = LowWaterMark(0, row.checkpoint, None)
    return Settlements(applier.records, InFlight(row), lambda: mark, set(), nothing)
