"""What a switch says of a command that does not start its daemon."""

from dataclasses import replace
from pathlib import Path

import pytest

from mtsd.model.errors import NeedsPersonError
from mtsd.operations.move.daemons import DaemonOf, Replication, until
from tests.operations.check.good_facts import SETTINGS


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("sh -c 'exit 3'", "has ended with exit status 3, and says nothing"),
        ("sh -c 'echo no such unit >&2; exit 5'", "exit status 5, and says no such unit"),
        ("sh -c 'kill -9 $$'", "has ended with signal 9, and says nothing"),
    ],
)
async def test_how_a_command_fails_is_said(start: str, says: str, tmp_path: Path) -> None:
    log = tmp_path / "start.log"
    log.write_text("of an earlier switch\n")
    status = replace(SETTINGS.status, socket=tmp_path / "mtsd.sock")
    settings = replace(SETTINGS, status=status)
    daemon = DaemonOf(Replication(settings, tmp_path / "config.toml"), start, log)
    daemon.start()
    with pytest.raises(NeedsPersonError) as raised:
        await until(daemon.stands_by)
    assert str(raised.value).endswith(says)
