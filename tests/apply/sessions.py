"""Sessions on a real target, over its socket."""

from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.wire.endpoint import Endpoint
from tests.servers.mysqld import Server


def endpoint(server: Server) -> Endpoint:
    """Return where the target is, for root."""
    return Endpoint("target", "", 0, str(server.socket), "root", "")


async def open_session(server: Server, *, binary_log: bool = True) -> TargetSession:
    """Open a session."""
    return await TargetSession.open(endpoint(server), SessionSettings(binary_log))
