"""MariaDB servers to run: Debian's packages in the project's cache, like MySQL's.

They are unpacked into `.cache/mariadb/<version>/` the first time that a test asks for them; nothing
else does. The template of the data directory comes from the statements that mariadb-install-db
would give to `mariadbd --bootstrap`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final

from tests.servers.apt import AptError, PrivateApt
from tests.servers.provision import CACHE, Installation, Options, alone, program

SUITES: Final = {"10.11": "bookworm", "11.8": "sid"}
"""Debian's suite that has a series of MariaDB."""
_PROGRAMS: Final = {
    "mysql": "mariadb",
    "mysqlbinlog": "mariadb-binlog",
    "mysqldump": "mariadb-dump",
}


@dataclass(frozen=True, slots=True)
class MariadbInstallation(Installation):
    """A MariaDB to run; `root` is the folder that its packages were unpacked into."""

    defaults: ClassVar[Options] = {
        "bind_address": "127.0.0.1",
        "innodb_buffer_pool_dump_at_shutdown": "OFF",
        "innodb_buffer_pool_load_at_startup": "OFF",
        "innodb_buffer_pool_size": "96M",
        "innodb_flush_log_at_trx_commit": 2,
        "innodb_flush_method": "nosync",
        # The kernel has only so many requests for all servers of the machine.
        "innodb_use_native_aio": "OFF",
        "innodb_log_file_size": "16M",
        "innodb_undo_tablespaces": 0,
        "log_bin": "binlog",
        "performance_schema": "OFF",
        "secure_file_priv": "",
        "sync_binlog": 0,
    }
    binlog_status: ClassVar[str] = "SHOW MASTER STATUS"
    binlog_reset: ClassVar[str] = "RESET MASTER"
    replica_resets: ClassVar[tuple[str, ...]] = ("STOP ALL SLAVES", "RESET SLAVE ALL")
    gtid_resets: ClassVar[tuple[str, ...]] = ("SET GLOBAL gtid_slave_pos = ''",)
    accounts: ClassVar[str] = "SELECT User, Host, is_role FROM mysql.user"
    xa_recover: ClassVar[str] = "XA RECOVER FORMAT='SQL'"

    def program(self, name: str) -> list[str]:
        """Return the words that run a program of this MariaDB, given by MySQL's name for it."""
        return program(self.root, _PROGRAMS.get(name, name))

    def server(self) -> list[str]:
        """Return the words that run mariadbd, without options of its own."""
        if self.root is None:
            raise AptError("a MariaDB on the PATH is not used")
        return _server(self.root)


@cache
def provide_mariadb(series: str) -> MariadbInstallation:
    """Return a MariaDB of a series in SUITES, downloaded if need be; raises AptError.

    Safe to be called by several processes at once: one downloads, the others wait.
    """
    home = CACHE / "mariadb"
    with alone(home):
        places = sorted(home.glob(f"{series}.*"), key=lambda place: int(place.suffix[1:]))
        root = places[-1] if places else _download(home, series)
    return MariadbInstallation(root.name, root, root / "template")


def _download(home: Path, series: str) -> Path:
    print(f"MariaDB {series}: fetching Debian's packages into the project's cache", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=home, prefix=".partial-") as partial:
        tree = Path(partial) / "tree"
        with PrivateApt(Path(partial), suite=SUITES[series]) as apt:
            apt.unpack(["mariadb-server-core", "mariadb-client-core"], tree)
            # mariadb-binlog and mariadb-dump are here; its dependencies are for Perl programs.
            apt.unpack(["mariadb-client"], tree, dependencies=False)
        version = _version(tree)
        if not version.startswith(f"{series}."):
            raise AptError(f"Debian's suite {SUITES[series]} has MariaDB {version}, not {series}")
        _initialize(tree, tree / "template")
        return tree.rename(home / version)


def _server(root: Path) -> list[str]:
    share = _share(root)
    words = [
        *program(root, "mariadbd"),
        "--no-defaults",
        f"--basedir={root}/usr",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share}/charsets",
        f"--plugin-dir={root}/usr/lib/mysql/plugin",
    ]
    if os.geteuid() == 0:
        words.append("--user=root")
    return words


def _share(root: Path) -> Path:
    """Return the folder of messages and of the statements for a new data directory."""
    mariadb = root / "usr/share/mariadb"
    return mariadb if mariadb.is_dir() else root / "usr/share/mysql"


def _version(root: Path) -> str:
    words = [*program(root, "mariadbd"), "--no-defaults", "--version"]
    asked = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"Ver (\d+\.\d+\.\d+)-MariaDB", asked.stdout)
    if found is None:
        raise AptError("the packages hold no mariadbd that runs on this machine")
    return found[1]


def _initialize(root: Path, template: Path) -> None:
    """Make a data directory at `template`, small; it has root@127.0.0.1 anyway."""
    share = _share(root)
    statements = ["CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"]
    for part in ("system_tables", "performance_tables", "system_tables_data"):
        (path,) = share.glob(f"m*_{part}.sql")
        statements.append(path.read_text())
    with tempfile.TemporaryDirectory(dir=template.parent, prefix=".template-") as folder:
        made = Path(folder) / "data"
        made.mkdir()
        done = subprocess.run(
            [
                *_server(root),
                "--bootstrap",
                f"--datadir={made}",
                f"--tmpdir={folder}",
                "--innodb-log-file-size=16M",
                "--innodb-undo-tablespaces=0",
            ],
            input="".join(statements),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AptError(f"mariadbd --bootstrap failed: {' '.join(done.stderr.split())[-600:]}")
        made.rename(template)
