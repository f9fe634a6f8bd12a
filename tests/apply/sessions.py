"""Sessions on a real target, over its socket."""

from mtsd.apply.appliers.applier import Applier
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.model.fault_points import nothing
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.server import Flavour, ServerVersion
from mtsd.replica.ways.settlements import Settlements
from mtsd.schedule.batches.in_flight import InFlight
from mtsd.schedule.done.worker_row import WorkerRow
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.traits import ServerTraits
from tests.servers.mysqld import Server

TRAITS = ServerTraits(
    server=ServerVersion(Flavour.MYSQL, (9, 7, 4)), server_id=1, uuid="", place="",
    reported=("", 0), gtid_mode=True, log_bin=True, binlog_checksum=True,
    max_allowed_packet=1 << 20, read_only=False, super_read_only=False,
    lower_case_table_names=False, explicit_defaults_for_timestamp=True,
)  # fmt: skip
"""Of a MySQL that nobody asks."""


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
