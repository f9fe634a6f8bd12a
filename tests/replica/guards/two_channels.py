"""Two daemons between the same servers, on channels of their own."""

from pathlib import Path

from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.pair import Pair


def daemons(pair: Pair, folder: Path, *, schemas: bool = False) -> list[DaemonProcess]:
    """Return two daemons, not started, on channels of the names one and two."""
    found = []
    for number, channel in enumerate(("one", "two")):
        own = folder / channel
        own.mkdir()
        settings: dict[str, Value] = {
            "replica.channel": channel,
            "source.server_id": 4201 + number,
            "target.schema": f"mtsd_{channel}" if schemas else "mtsd",
        }
        found.append(DaemonProcess(pair.source, pair.target, own, settings))
    return found


def of_their_own(pair: Pair, folder: Path) -> list[DaemonProcess]:
    """Return two daemons that share the databases, not started."""
    found = daemons(pair, folder)
    for daemon, database in zip(found, ("a", "b"), strict=True):
        daemon.settings["filter.do_db"] = [database]
    return found
