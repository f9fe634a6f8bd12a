"""A real daemon with real passwords, right and wrong ones, shows none of them anywhere."""

import io
import json
import tarfile
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest

from mtsd.cli.main import main
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

ON_SOURCE, ON_TARGET, NEXT, WRONG = (f"geheim{n}-'\"\\%s{{}}-ende" for n in range(4))
"""With what quoting, formatting and escaping may stumble over."""

SECRETS = ("geheim", "-ende")
"""Parts of all of them, so that one that is escaped or cut is found too."""


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair() as pair:
        for server, user, password in (
            (pair.source, "repl", ON_SOURCE),
            (pair.target, "mtsd", ON_TARGET),
        ):
            with server.client() as client, client.cursor() as cursor:
                cursor.execute("SET sql_log_bin = 0")
                cursor.execute(f"CREATE USER {user}@'%%' IDENTIFIED BY %s", (password,))
                cursor.execute(f"GRANT ALL ON *.* TO {user}@'%' WITH GRANT OPTION")
        pair.source.sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
        yield pair


@pytest.fixture
def daemon(pair: Pair, tmp_path: Path) -> Iterator[DaemonProcess]:
    settings: dict[str, Value] = {
        "source.user": "repl",
        "target.user": "mtsd",
        "log.level": "debug",
    }
    environ = {"PYTHONASYNCIODEBUG": "1", "PYTHONDEVMODE": "1"}
    with_debugging = DaemonProcess(
        pair.source, pair.target, tmp_path, settings, environ=environ, forked=False
    )
    yield with_debugging
    with_debugging.close()
    assert_hidden(with_debugging.log.read_text())


def assert_hidden(*texts: str) -> None:
    for text in texts:
        assert text
        for secret in SECRETS:
            assert secret not in text


def told(daemon: DaemonProcess, *command: str) -> str:
    """Return what a command writes, to either side, in the daemon's environment."""
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as written:
        for name, value in daemon.environ.items():
            patch.setenv(name, value)
        with redirect_stdout(written), redirect_stderr(written), suppress(SystemExit):
            main([*command, "--config", str(daemon.config)])
        return written.getvalue()


def credentials(folder: Path, **secrets: str) -> dict[str, str]:
    directory = folder / "credentials"
    directory.mkdir()
    for name, secret in secrets.items():
        (directory / name.replace("__", ".")).write_text(secret)
    return {"CREDENTIALS_DIRECTORY": str(directory)}


def bundle(daemon: DaemonProcess) -> dict[str, str]:
    """Return the parts of a support bundle; the log has two passwords in it."""
    log = daemon.folder / "with-passwords.log"
    log.write_text(
        f"{daemon.log.read_text()}\nmysql://me:{ON_SOURCE}@db1 {json.dumps(ON_TARGET)}\n"
    )
    output = daemon.folder / "bundle.tar.gz"
    said = told(daemon, "support-bundle", "--log", str(log), "--output", str(output))
    assert said.splitlines()[-1] == f"written: {output}"
    assert output.stat().st_mode & 0o777 == 0o600
    with tarfile.open(output) as tar:
        files = [(member.name, tar.extractfile(member)) for member in tar.getmembers()]
        return {Path(name).name: file.read().decode() for name, file in files if file is not None}


def test_while_it_runs(daemon: DaemonProcess) -> None:
    daemon.settings |= {"source.password": ON_SOURCE, "source.tls": "disabled"}
    daemon.settings["source.get_public_key"] = True
    daemon.environ["MTSD_TARGET__PASSWORD"] = ON_TARGET
    daemon.start()
    daemon.wait_until_caught_up()
    assert_hidden(
        Path(f"/proc/{daemon.pid}/cmdline").read_text(),
        told(daemon, "status"),
        told(daemon, "status", "--json"),
        told(daemon, "config", "show"),
        told(daemon, "config", "show", "--json"),
    )
    parts = bundle(daemon)
    assert_hidden(*parts.values())
    assert not {name for name, text in parts.items() if text.startswith("could not be had")}
    ((token,),) = daemon.target.sql("SELECT Token FROM mtsd.slave_lock_token")
    assert token not in "".join(parts.values())
    assert "slave_worker_info" in parts["position-tables.json"]
    assert "mtsd_lag_seconds" in parts["metrics.txt"]
    daemon.settings["source.password"] = NEXT
    daemon.configure()
    daemon.reload()
    # And a configuration that is wrong in just that key.
    daemon.config.write_text(f"[source]\npassword = ['geheim']\n[{NEXT!r}]\n".replace("\\", ""))
    assert_hidden(told(daemon, "config", "show"), told(daemon, "run"))
    daemon.reload()
    deadline = time.monotonic() + 120
    while "configuration refused" not in daemon.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert daemon.stop() == 0
    daemon.configure()
    # Now from what the target holds.
    assert_hidden(told(daemon, "status"))
    (daemon.folder / "bundle.tar.gz").unlink()
    parts = bundle(daemon)
    assert parts["metrics.txt"] == "could not be had: no daemon answers\n"
    assert '"state": "stopped"' in parts["status.json"]


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize("role", ["source", "target"])
def test_where_the_server_refuses_it(
    daemon: DaemonProcess, tmp_path: Path, role: str, form: str
) -> None:
    daemon.settings["log.format"] = form
    passwords = {"source": ON_SOURCE, "target": ON_TARGET, role: WRONG}
    if form == "json":
        daemon.environ |= credentials(
            tmp_path, source__password=passwords["source"], target__password=passwords["target"]
        )
    else:
        for section, password in passwords.items():
            (tmp_path / section).write_text(password)
            daemon.settings[f"{section}.password_file"] = section
    daemon.start()
    assert daemon.wait() == 3
    assert "Access denied" in daemon.log.read_text()


@pytest.mark.parametrize(
    ("point", "form"),
    [("before_connect_target", "json"), ("before_dump", "console"), ("before_bundle", "json")],
)
def test_in_tracebacks(pair: Pair, daemon: DaemonProcess, point: str, form: str) -> None:
    daemon.settings |= {
        "source.password": ON_SOURCE,
        "target.password": ON_TARGET,
        "log.format": form,
        "replica.channel": f"{point}_{form}",
        "source.start": "latest",
    }
    # A source is on one channel only.
    pair.target.sql("DROP DATABASE IF EXISTS mtsd")
    daemon.start(fault=f"{point}:1:raises")
    if point == "before_bundle":
        daemon.wait_until_running()
        pair.source.sql(f"INSERT INTO a.t VALUES ({len(form)})")
    assert daemon.wait() == 1
    log = daemon.log.read_text()
    assert "unexpected failure" in log
    assert "UnexpectedError" in log
