"""A MySQL server to run: the one on the PATH, else Debian's packages in the project's cache.

`python3 -m tests.servers.provision` provides it and prints its version and place. The packages are
unpacked into `.cache/mysql/<version>/` and run by the loader that came with them, so the machine's
older libc does not matter. Beside each server lies a template of its data directory, made once by
--initialize-insecure, because a copy takes a tenth of the time.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from tests.servers.apt import AptError, PrivateApt

CACHE: Final = Path(__file__).resolve().parents[2] / ".cache"

# Whether names are resolved or not, root can come in over TCP from this machine.
FIRST_STATEMENTS: Final = (
    "CREATE USER 'root'@'127.0.0.1';\nGRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
)


Options = Mapping[str, str | int | None]
"""Options of mysqld by name, without dashes; None for one that takes no value (skip_log_bin)."""


@dataclass(frozen=True, slots=True)
class Installation:
    """A MySQL to run.

    `root` is the folder that its packages were unpacked into, None for one on the PATH;
    `template` a data directory to copy, in which root@localhost and root@127.0.0.1 have no
    password.
    """

    version: str
    root: Path | None
    template: Path

    defaults: ClassVar[Options] = {
        "bind_address": "127.0.0.1",
        "innodb_buffer_pool_dump_at_shutdown": "OFF",
        "innodb_buffer_pool_load_at_startup": "OFF",
        "innodb_buffer_pool_size": "96M",
        # Created and dropped tables are half of what many tests let a server do: a file of its own
        # for each takes twice the processor time, and four times as long.
        "innodb_file_per_table": "OFF",
        "innodb_flush_log_at_trx_commit": 2,
        # No fsync: that is half of what a start takes, and all of a wait for a busy disk.
        "innodb_flush_method": "nosync",
        # The kernel has only so many requests for all servers of the machine.
        "innodb_use_native_aio": "OFF",
        # The server touches all of it when it starts.
        "innodb_log_buffer_size": "1M",
        "innodb_redo_log_capacity": "64M",
        "log_bin": "binlog",
        "log_error_verbosity": 2,
        "mysqlx": "OFF",
        "performance_schema": "OFF",
        "secure_file_priv": "",
        "sync_binlog": 0,
    }
    """The options of a test's server, unless the test says otherwise."""
    binlog_status: ClassVar[str] = "SHOW BINARY LOG STATUS"
    """The statement whose row begins with the end of its binlog."""
    binlog_reset: ClassVar[str] = "RESET BINARY LOGS AND GTIDS"
    replica_resets: ClassVar[tuple[str, ...]] = ("STOP REPLICA", "RESET REPLICA ALL")
    """Statements that forget its source."""
    gtid_resets: ClassVar[tuple[str, ...]] = ()
    """Statements that forget what `binlog_reset` does not, of GTIDs."""
    accounts: ClassVar[str] = "SELECT User, Host, 'N' FROM mysql.user"
    """The statement that lists the accounts: user, host, and Y for a role that is no user."""
    xa_recover: ClassVar[str] = "XA RECOVER CONVERT XID"
    """The statement that lists prepared transactions so that an xid can be written again."""

    def program(self, name: str) -> list[str]:
        """Return the words that run a program of this MySQL: mysqld, mysql, mysqlbinlog, …."""
        return program(self.root, name)

    def server(self) -> list[str]:
        """Return the words that run mysqld, without options of its own."""
        return server(self.root)


def provide() -> Installation:
    """Return a MySQL, downloaded if need be; raises AptError where there is none.

    Safe to be called by several processes at once: one downloads, the others wait.
    """
    home = CACHE / "mysql"
    with alone(home):
        return _on_path(home) or _cached(home) or _download(home)


def program(root: Path | None, name: str) -> list[str]:
    """Return the words that run the program `name` of the MySQL in `root` (None: the PATH)."""
    if root is None:
        return [name]
    folder = "sbin" if name in {"mysqld", "mariadbd"} else "bin"
    loaders = [loader for place in _libraries(root) for loader in place.glob("ld-linux*.so.*")]
    path = ":".join(str(place) for place in _libraries(root))
    return [str(loaders[0]), "--library-path", path, str(root / "usr" / folder / name)]


def server(root: Path | None) -> list[str]:
    """Return the words that run mysqld with the directories of the tree in `root`."""
    words = [*program(root, "mysqld"), "--no-defaults"]
    if root is not None:
        words += [
            f"--basedir={root}/usr",
            f"--lc-messages-dir={root}/usr/share/mysql",
            f"--character-sets-dir={root}/usr/share/mysql/charsets",
            f"--plugin-dir={root}/usr/lib/mysql/plugin",
        ]
    if os.geteuid() == 0:
        words.append("--user=root")
    return words


def _libraries(root: Path) -> list[Path]:
    """Return the folders of shared objects under `root`, whatever the architecture is called."""
    tops = [root / top / name for top in ("usr", ".") for name in ("lib", "lib64")]
    # The deepest first: there the loader is a file, in the others a link that may point out.
    places = [place for top in tops for place in sorted(top.glob("*-linux-gnu*"))]
    return [place for place in [*places, *tops] if place.is_dir()]


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Keep other processes from filling the folder `home` meanwhile; it is made if need be."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _version(root: Path | None) -> str | None:
    """Return the version of the mysqld in `root`, None where it is not a MySQL."""
    asked = subprocess.run(
        [*program(root, "mysqld"), "--no-defaults", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Ver (\d+\.\d+\.\d+)", asked.stdout)
    return found[1] if found and "MariaDB" not in asked.stdout else None


def _on_path(home: Path) -> Installation | None:
    version = _version(None) if shutil.which("mysqld") and shutil.which("mysqlbinlog") else None
    if version is None:
        return None
    template = home / f"path-{version}"
    if not template.exists():
        try:
            _initialize(None, template)
        except AptError as error:
            # A security profile may keep the machine's own mysqld out of every folder but its own.
            print(f"mysqld on the PATH is of no use here: {error}", file=sys.stderr)
            return None
    return Installation(version, None, template)


def _cached(home: Path) -> Installation | None:
    places = [place for place in home.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", place.name)]
    if not places:
        return None
    newest = max(places, key=lambda place: [int(part) for part in place.name.split(".")])
    return Installation(newest.name, newest, newest / "template")


def _download(home: Path) -> Installation:
    for remains in home.glob(".partial-*"):
        shutil.rmtree(remains, ignore_errors=True)
    print("MySQL: fetching Debian's packages into the project's cache", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=home, prefix=".partial-") as partial:
        tree = Path(partial) / "tree"
        with PrivateApt(Path(partial)) as apt:
            names = [_newest(apt, f"mysql-{part}-core") for part in ("server", "client")]
            apt.unpack(names, tree)
        version = _version(tree)
        if version is None:
            raise AptError("the packages hold no mysqld that runs on this machine")
        _initialize(tree, tree / "template")
        root = tree.rename(home / version)
    return Installation(version, root, root / "template")


def _newest(apt: PrivateApt, name: str) -> str:
    """Return the package `name`, or the one with the highest version in its name (Ubuntu's)."""
    versions = {
        tuple(int(part) for part in found[1].split(".")): found[0]
        for found in (re.fullmatch(rf"{name}-([\d.]+)", known) for known in apt.names(name))
        if found
    }
    return versions[max(versions)] if versions else name


def _initialize(root: Path | None, template: Path) -> None:
    """Make a data directory at `template`, small, without the identity of a server."""
    with tempfile.TemporaryDirectory(dir=template.parent, prefix=".template-") as folder:
        made = Path(folder) / "data"
        first = Path(folder) / "first.sql"
        first.write_text(FIRST_STATEMENTS)
        done = subprocess.run(
            [
                *server(root),
                "--initialize-insecure",
                f"--datadir={made}",
                f"--init-file={first}",
                "--innodb-redo-log-capacity=8M",
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AptError(f"mysqld --initialize failed: {' '.join(done.stderr.split())[-600:]}")
        (made / "auto.cnf").unlink(missing_ok=True)
        made.rename(template)


if __name__ == "__main__":
    try:
        provided = provide()
    except AptError as no_server:
        sys.exit(f"no MySQL server: {no_server}")
    print(f"MySQL {provided.version}: {provided.root or shutil.which('mysqld')}")
