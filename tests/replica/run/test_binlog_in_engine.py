"""MariaDB 12.3 with binlog_storage_engine: a source without files and offsets.

No package has that server. Its stream is made of an older one's on the way (the documentation of
the engine's binlog: the events are the same, without places, and nothing says where a file ends).
"""

import struct
from pathlib import Path

import pytest

from mtsd.binlog.bytes.event_type import EventType
from tests.fix_daemon import SIGKILLED, command
from tests.fix_families import mariadbs
from tests.fix_kills import SMALL
from tests.load.mariadb import MariadbLoad, unequal
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.provision import Options
from tests.servers.proxy import Proxy

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

_VARIABLE = b"\x1fexplicit_defaults_for_timestamp\x02ON"
_IN_ENGINE = b"\x15binlog_storage_engine\x0c" + b"innodb".ljust(12)


class InEngine:
    """Changes what a MariaDB says into what it would say with its binary log inside InnoDB."""

    def __init__(self) -> None:
        self._rest = b""

    def __call__(self, piece: bytes) -> bytes:
        data = self._rest + piece
        said = bytearray()
        at = 0
        while len(data) - at >= 4:
            size = int.from_bytes(data[at : at + 3], "little")
            if len(data) - at < 4 + size:
                break
            said += data[at : at + 4] + _changed(data[at + 4 : at + 4 + size])
            at += 4 + size
        self._rest = data[at:]
        return bytes(said)


def _changed(packet: bytes) -> bytes:
    if len(packet) < 20 or packet[0] or struct.unpack_from("<I", packet, 10)[0] != len(packet) - 1:
        return packet.replace(_VARIABLE, _IN_ENGINE)
    assert packet[5] != EventType.ROTATE_EVENT or packet[14:18] == bytes(4), "a file has ended"
    return packet[:14] + bytes(4) + packet[18:]


def caught_up(daemon: DaemonProcess) -> None:
    daemon.wait_until_caught_up()
    status = daemon.status()
    assert status is not None
    assert status.executed.file == ""


def test_a_source_without_files(tmp_path: Path) -> None:
    # The proxy changes what it can read.
    options: Options = {
        "binlog_checksum": "NONE",
        "explicit_defaults_for_timestamp": "ON",
        "skip_ssl": None,
    }
    with mariadbs("11.8", options=options) as pair, Proxy(pair.source, InEngine) as proxy:
        load = MariadbLoad(pair.source, 12, ("ROW", "STATEMENT", "MIXED"))
        load.prepare()
        settings: dict[str, Value] = {**SMALL, "source.port": proxy.port}
        daemon = DaemonProcess(pair.source, pair.target, tmp_path, settings)
        with load.running(pause=0.05):
            for point in ("before_commit:20", "after_commit:9", "after_read:5"):
                daemon.start(fault=point)
                assert daemon.wait() == SIGKILLED, daemon.last_words()
            daemon.start()
            daemon.wait_for_status(lambda status: status.state == "running", "not running")
            proxy.drop()
        caught_up(daemon)
        assert daemon.stop() == 0
        assert unequal(pair.source, pair.target) == []
        ((file,),) = pair.target.sql("SELECT Master_log_name FROM mtsd.slave_relay_log_info")
        assert file == ""
        checked = told(tmp_path, daemon.settings)
        assert checked.status == 0, checked.bad
        assert "what the GTIDs say" in command(daemon, "position", "show")
        command(daemon, "position", "set", "latest", "--forward")
        said = command(daemon, "position", "set", "binlog.000001:4", status=3)
        assert "inside a storage engine (binlog_storage_engine), which is read by GTID only" in said
        pair.source.sql("CREATE DATABASE later")
        daemon.start()
        caught_up(daemon)
        assert daemon.stop() == 0
        assert unequal(pair.source, pair.target) == []
