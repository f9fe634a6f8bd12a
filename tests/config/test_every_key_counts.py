"""No key is accepted and does nothing: the daemon reads it."""

from pathlib import Path

import mtsd
from mtsd.config import FIELDS
from tests.config.reads_of_keys import keys_read

ROOT = Path(mtsd.__file__).parent
OF_THE_DAEMON = [
    *(ROOT / package for package in ("daemon", "replica", "source", "apply", "control")),
    # A password's file is read where it is loaded.
    ROOT / "config" / "loading.py",
]
"""Not `operations`: to warn of a key is not to do what it says."""


def test_every_key_is_read() -> None:
    assert set(FIELDS) - keys_read(OF_THE_DAEMON) == set()


def test_the_scan_sees_what_is_there_and_nothing_else(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "class Life:\n"
        "    def __init__(self, settings: Settings, other: Other) -> None:\n"
        "        self._settings = settings\n"
        "        self.other = other\n"
        "    def run(self) -> None:\n"
        "        print(self._settings.replica.bind, self.other.replica.ddl, self.replica.ddl)\n"
        "def one(read: ReplicaSettings, replica: Replica, endpoint: EndpointSettings) -> None:\n"
        "    print(read.batch_bytes, replica.stop_timeout, endpoint.port)\n"
        "    read.batch_groups = 1\n"
        "def two(settings: Settings) -> None:\n"
        "    log = settings.log\n"
        "    print(log.level)\n"
    )
    assert keys_read([tmp_path]) & FIELDS.keys() == {
        "replica.bind", "replica.batch_bytes", "source.port", "target.port", "log.level"
    }  # fmt: skip
