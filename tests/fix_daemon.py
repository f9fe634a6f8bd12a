"""Commands of mtsd on a daemon of a test, and what the daemon then says and does."""

import io
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from mtsd.cli.main import main
from tests.load.compare import differences
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Options, Server
from tests.servers.pair import Pair

NEEDS_PERSON = 3
"""The exit status of a daemon that cannot go on by itself."""
SIGKILLED = -9


def catch_up(daemon: DaemonProcess) -> None:
    """Start the daemon, and stop it once it has applied everything."""
    daemon.start()
    daemon.wait_until_caught_up()
    assert daemon.stop() == 0, daemon.last_words()


def assert_none_in_doubt(target: Server) -> None:
    """Check that no group is in doubt, once what the daemon still owes is settled."""
    deadline = time.monotonic() + 10
    while (found := target.sql("SELECT COUNT(*) FROM mtsd.slave_in_doubt")) != [(0,)]:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def stops(daemon: DaemonProcess) -> str:
    """Start the daemon, which is to stop by itself, and return its error."""
    daemon.start()
    assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
    return str(daemon.records()[-1]["error"])


def command(daemon: DaemonProcess, *arguments: str, status: int | None = 0) -> str:
    """Run a command of mtsd in this process; return its output, then its errors.

    It has to end with that status; None: with any.
    """
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            code = main([*arguments, "--config", str(daemon.config)])
        except SystemExit as exit_:
            code = int(str(exit_.code))
    said = output.getvalue() + errors.getvalue()
    assert status in {code, None}, said
    return said


def json_status(daemon: DaemonProcess) -> dict[str, Any]:
    """Return what `mtsd status --json` prints."""
    said = command(daemon, "status", "--json", status=None)
    status: dict[str, Any] = json.loads(said[said.index("{") : said.rindex("}") + 1])
    return status


def stopped_at(daemon: DaemonProcess) -> dict[str, Any]:
    """Return what the status says of the group that stopped the replica."""
    found = json_status(daemon)["stopped_at"]
    assert isinstance(found, dict), found
    return found


@contextmanager
def servers_and_daemon(
    options: Options, folder: Path, *, source: Options | None = None
) -> Iterator[tuple[Pair, DaemonProcess]]:
    """Start two servers, and make a daemon for them, which is not started."""
    with Pair(source, options) as pair:
        daemon = DaemonProcess(pair.source, pair.target, folder)
        try:
            yield pair, daemon
        finally:
            daemon.close()


AT_ONCE_S = 60.0
"""Without waiting for anything; a busy machine takes that long to start a process."""


def stopped_with(daemon: DaemonProcess) -> str:
    """Start the daemon, which is to stop by itself; return its one error."""
    with daemon:
        assert daemon.wait(AT_ONCE_S) == NEEDS_PERSON
    errors = [record for record in daemon.records() if record["level"] == "error"]
    assert len(errors) == 1, errors
    assert errors[0]["event"] == "replication stopped"
    assert "Traceback" not in daemon.log.read_text()
    said = str(errors[0]["error"])
    assert "\n" not in said
    return said


def replicated(pair: Pair, folder: Path, settings: dict[str, Value] | None = None) -> None:
    """Apply all that the source has with a daemon of these settings."""
    with DaemonProcess(pair.source, pair.target, folder, settings or {}) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0


def differences_after(pair: Pair, folder: Path) -> list[str]:
    """Apply all that the source has, and return in what the two servers differ then."""
    replicated(pair, folder)
    return differences(pair.source, pair.target)


def stopped(pair: Pair, folder: Path, settings: dict[str, Value] | None = None) -> str:
    """Start a daemon of these settings, which is to stop by itself, and return its last words."""
    daemon = DaemonProcess(pair.source, pair.target, folder, settings or {})
    daemon.start()
    assert daemon.wait() == NEEDS_PERSON, daemon.last_words()
    return daemon.last_words()


def foretold(pair: Pair, folder: Path, settings: dict[str, Value] | None = None) -> dict[str, str]:
    """Return what `mtsd check` says is not well, by the lines' ids."""
    daemon = DaemonProcess(pair.source, pair.target, folder, settings or {})
    return told(folder, daemon.settings).bad
