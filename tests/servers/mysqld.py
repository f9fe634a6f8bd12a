"""One server in a folder of its own: started, stopped, killed and asked, synchronously.

Its settings are for tests: small in memory, and not durable against the loss of power, but a
killed mysqld loses nothing, because every commit is handed to the operating system.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import closing
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pymysql
from pymysql.constants import CLIENT

from tests.servers.leases import (
    DirtyServerError,
    Fresh,
    Parked,
    adapt,
    clean,
    first_look,
    key_of,
    park,
    take,
    untouched,
)
from tests.servers.provision import Installation, Options, provide
from tests.servers.reaper import register

__all__ = ["GTIDS", "NO_GTIDS", "Options", "Server", "ServerError"]

GTIDS: Final[Options] = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
NO_GTIDS: Final[Options] = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
_LETS_GO_LATER: Final = frozenset({1205, 1397})
"""Errors of a MariaDB whose session with an XA transaction has ended: for a while it goes on to
hold its locks and its name. The server is for nobody else, and no test is to blame."""


class ServerError(RuntimeError):
    """A server did not start or stop, or one of its programs failed."""


class Server:
    """A server with its own data directory, socket and port (on 127.0.0.1): MySQL, or another.

    `options` come after the installation's defaults and win over them. The user is root, without
    a password, over the socket and over TCP. As a context manager it starts, and at the end
    everything is gone. What starts may be a server that another test has ended with
    (`tests.servers.leases`).
    Should the process that started it die, the server is killed and its folder removed.
    """

    def __init__(
        self,
        options: Options | None = None,
        *,
        installation: Installation | None = None,
        parent: Path | None = None,
        new: bool = False,
    ) -> None:
        """`parent` is the folder that its own folder is in, None for the system's.

        One that is `new` is no parked one: before its start, nothing listens on its port.
        """
        self.installation = installation or _provided()
        self.options: dict[str, str | int | None] = {
            **self.installation.defaults,
            **(options or {}),
        }
        # A server in a folder of the caller's is not for others.
        self._key = key_of(self.installation, self.options) if parent is None else None
        self._parked = None if self._key is None or new else take(self._key, self.options)
        self._fresh: Fresh | None = None
        """What it has to be made again to be parked; None if it never is."""
        if self._parked is not None:
            self.folder = self._parked.folder
            self._port_lock = self._parked.port_lock
        else:
            self.folder = Path(tempfile.mkdtemp(prefix="mtsd-mysql-", dir=parent))
            self._port_lock = _lock_of_a_free_port()
            register(self.folder, 0)
        self.datadir = self.folder / "data"
        self.tmpdir = self.folder / "tmp"
        self.socket = self.folder / "mysqld.sock"
        self.error_log = self.folder / "error.log"
        self.port: int = self._port_lock.getsockname()[1]
        self.options.setdefault("server_id", self.port)
        self._first_options = dict(self.options)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_new = False

    @property
    def pid(self) -> int:
        """The process id of the running mysqld; raises ServerError where none runs."""
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether mysqld runs."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            # What a failure has left behind is not for others.
            self.discard()
        self.close()

    def start(self, *, timeout: float = 60.0) -> None:
        """Start mysqld and wait until it answers, `timeout` seconds at most."""
        self.spawn()
        self.wait_ready(timeout=timeout)

    def spawn(self) -> None:
        """Start mysqld without waiting for it."""
        if self.running:
            raise ServerError(f"mysqld on port {self.port} already runs")
        if self._parked is not None and self._use(self._parked):
            return
        self._is_new = not self.datadir.exists()
        if self._is_new:
            command = ["cp", "-r", "--reflink=auto", str(self.installation.template)]
            subprocess.run([*command, str(self.datadir)], check=True)
        # A socket left by a killed server would look like the new one's.
        self.socket.unlink(missing_ok=True)
        # MariaDB removes the temporary tables that it finds in tmpdir at its start: another
        # server's too.
        self.tmpdir.mkdir(exist_ok=True)
        own = {
            "datadir": str(self.datadir),
            "socket": str(self.socket),
            "tmpdir": str(self.tmpdir),
            "port": self.port,
        }
        words = [
            f"--{name}" if value is None else f"--{name}={value}"
            for name, value in {**self.options, **own}.items()
        ]
        with self.error_log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.installation.server(), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        register(self.folder, self._process.pid)

    def wait_ready(self, *, timeout: float = 60.0) -> None:
        """Wait until mysqld answers; raises ServerError with the end of its log if it does not."""
        process = self._running()
        deadline = time.monotonic() + timeout
        while not self._answers():
            if process.poll() is not None:
                raise ServerError(f"mysqld ended with {process.returncode}:\n{self._last_words()}")
            if time.monotonic() > deadline:
                raise ServerError(f"no answer in {timeout} s:\n{self._last_words()}")
            time.sleep(0.02)
        if self._is_new and self._key is not None and self.options == self._first_options:
            with closing(self.client()) as client:
                self._fresh = first_look(self.installation, self.options, client, self.datadir)
        self._is_new = False

    def stop(self, *, timeout: float = 60.0) -> None:
        """Shut mysqld down in good order (SIGTERM); nothing to do where none runs."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ServerError(f"mysqld did not stop:\n{self._last_words()}") from None
        self._ended()

    def kill(self) -> None:
        """Kill mysqld (SIGKILL), as a crash would; nothing to do where none runs."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._ended()

    def restart(self, options: Options | None = None, *, timeout: float = 60.0) -> None:
        """Stop if it runs, then start on the same data and port, `options` changed for good."""
        self.stop(timeout=timeout)
        self.options.update(options or {})
        self.start(timeout=timeout)

    def close(self) -> None:
        """Give it back: it is parked for another test, or gone with everything it has written.

        It is gone if it does not run, or with other options than at first. Raises DirtyServerError
        where something in it cannot be put back: a test that means to leave it so ends with
        `discard`.
        """
        parked, self._parked = self._parked, None
        if (
            parked is None
            and self._fresh is not None
            and self._key is not None
            and self.running
            # A restart may have changed them.
            and self.options == self._first_options
        ):
            try:
                clean(self.installation, self._fresh, self.client, self.datadir)
            except (DirtyServerError, pymysql.err.MySQLError) as error:
                self.discard()
                if error.args[0] in _LETS_GO_LATER:
                    return
                test = os.environ.get("PYTEST_CURRENT_TEST", "this process").partition(" ")[0]
                raise DirtyServerError(
                    f"{test} leaves a server that cannot be cleaned ({error}): put that back, or"
                    " end the server by discard()"
                ) from error
            # The next one's log begins here.
            self.error_log.write_bytes(b"")
            parked = Parked(
                self._key, self.options, self.folder, self._port_lock, self._running(), self._fresh
            )
        if parked is None:
            self.discard()
            return
        self._process = None
        self._fresh = None
        park(parked)

    def discard(self) -> None:
        """Kill mysqld and remove everything it has written: what is in it now is for no other."""
        if self._parked is not None:
            # It was never started here.
            self._parked.end()
            self._parked = None
            return
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._port_lock.close()
        register(self.folder, None)

    def client(
        self,
        database: str | None = None,
        *,
        flags: int = 0,
        user: str = "root",
        password: str = "",
    ) -> pymysql.connections.Connection:
        """Return a PyMySQL connection over the socket, in autocommit; close it yourself."""
        return pymysql.connect(
            unix_socket=str(self.socket),
            user=user,
            password=password,
            database=database,
            charset="utf8mb4",
            autocommit=True,
            # PyMySQL would load all root certificates first: 25 ms of CPU.
            ssl_disabled=True,
            client_flag=flags,
        )

    def sql(self, text: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run the statements of `text` on a new connection and return the last one's rows.

        Raises pymysql's errors.
        """
        with closing(self.client(database, flags=CLIENT.MULTI_STATEMENTS)) as client:
            cursor = client.cursor()
            cursor.execute(text)
            while cursor.nextset():
                pass
            return list(cursor.fetchall())

    def wait_until_ended(self, session: int, *, timeout: float = 30.0) -> None:
        """Wait until the session with that id, whose client has closed it, is gone.

        MariaDB lets another session complete what it has prepared only then. Raises ServerError.
        """
        deadline = time.monotonic() + timeout
        while self.sql(f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {session}"):
            if time.monotonic() > deadline:
                raise ServerError(f"session {session} is still there after {timeout} s")
            time.sleep(0.01)

    def binlog_end(self) -> tuple[str, int, str]:
        """Return where its binlog ends: file, offset and GTIDs."""
        file, offset, _, _, *gtids = self.sql(self.installation.binlog_status)[0]
        # MariaDB has them in a variable.
        (found,) = gtids or self.sql("SELECT @@gtid_binlog_pos")[0]
        return str(file), int(offset), str(found)

    def reset_binlog(self) -> None:
        """Begin its binlog anew, and forget its GTIDs."""
        self.sql(self.installation.binlog_reset)

    def tool(self, name: str, *args: str, stdin: bytes = b"") -> bytes:
        """Run a program of the same MySQL (mysqlbinlog, mysql, mysqldump) and return its output.

        It is told how to reach this server as root, and runs in the data directory, so that
        binlog files can be named alone. Raises ServerError with what it wrote to stderr.
        """
        words = [*self.installation.program(name), "--no-defaults"]
        words += [f"--socket={self.socket}", "--user=root", *args]
        # mysqlbinlog leaves the files of LOAD DATA behind.
        environ = {**os.environ, "TMPDIR": str(self.folder)}
        done = subprocess.run(
            words, input=stdin, capture_output=True, cwd=self.datadir, check=False, env=environ
        )
        if done.returncode:
            raise ServerError(f"{name} failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def _answers(self) -> bool:
        # PyMySQL leaves a socket open for every connection that is refused, so it asks second.
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(self.socket)):
                return False
        try:
            self.sql("SELECT 1")
        except pymysql.err.OperationalError:
            return False
        return True

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerError(f"no mysqld runs on port {self.port}")
        return self._process

    def _use(self, parked: Parked) -> bool:
        """Use a parked server in place of a start; return whether it is as it should be."""
        self._parked = None
        self._process = parked.process
        parked.go_on()
        if self.running and self.options == self._first_options:
            with closing(self.client()) as client:
                if untouched(client):
                    self._fresh = adapt(self.installation, parked, self.options, client)
                    return True
        self.kill()
        shutil.rmtree(self.datadir)
        return False

    def _ended(self) -> None:
        self._process = None
        register(self.folder, 0)

    def _last_words(self) -> str:
        return self.error_log.read_text(errors="replace")[-2000:]


@cache
def _provided() -> Installation:
    return provide()


def _lock_of_a_free_port() -> socket.socket:
    """Return a datagram socket on a port that is free for mysqld, which uses streams.

    While it is open no other test has the same port, also where its server is down between two
    runs. The port is below those that the system gives to clients, which take no such lock.
    """
    while True:
        address = "127.0.0.1", random.randrange(10_000, 32_000)
        lock = socket.socket(type=socket.SOCK_DGRAM)
        with socket.socket() as probe:
            try:
                lock.bind(address)
                probe.bind(address)
            except OSError:
                lock.close()
                continue
        return lock
