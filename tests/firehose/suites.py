"""The servers' own test suites: Debian's packages in the project's cache.

They are unpacked the first time that they are asked for. Only the statements of a test matter here,
so its client program runs it without a file of results, and mysql-test-run is not needed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.servers.apt import PrivateApt
from tests.servers.mariadb import SUITES, provide_mariadb
from tests.servers.provision import CACHE, Installation, alone, program, provide

MARIADB: Final = "11.8"
"""The series of MariaDB that is run unless another one is asked for."""
FOLDERS: Final = {
    "10.11": "usr/share/mysql/mysql-test",
    "11.8": "usr/share/mariadb/mariadb-test",
}
"""Where Debian's package of a series of MariaDB has its suites."""
_RESET: Final = re.compile(
    rb"\bRESET\s+(MASTER|BINARY\s+LOGS\s+AND\s+GTIDS)(\s+TO\s+[0-9]+)?\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Suites:
    """The test suites of one family.

    `folder` is what the tests call MYSQL_TEST_DIR, `client` the words that run its client program,
    `installation` a server of the same release, and `main` the folder of the suite of that name.
    """

    folder: Path
    client: tuple[str, ...]
    installation: Installation
    main: str

    def tests(self, suite: str, patterns: tuple[str, ...]) -> list[Path]:
        """Return the test files of a suite whose name without suffix fits one of the patterns."""
        place = self.folder / (self.main if suite == "main" else f"suite/{suite}")
        return sorted({
            path for pattern in patterns for path in place.rglob(f"{pattern}.test")
        })  # fmt: skip

    def name(self, test: Path) -> str:
        """Return the usual name of a test file: its suite, a dot, its own name."""
        parts = test.relative_to(self.folder).parts
        return f"{parts[1] if parts[0] == 'suite' else 'main'}.{test.stem}"


@cache
def provide_suites(family: str, series: str = MARIADB) -> Suites:
    """Return the suites of "mysql" or "mariadb", downloaded if need be; raises AptError.

    `series` is that of MariaDB. Safe to be called by several processes at once: one downloads, the
    others wait.
    """
    release = "sid"
    if family == "mariadb":
        installation: Installation = provide_mariadb(series)
        release = SUITES[series]
        packages = ["mariadb-test", "mariadb-test-data", "libpcre2-posix3"]
        binary, main = "usr/bin/mariadb-test", "main"
        folder = FOLDERS[series]
    else:
        installation = provide()
        packages, binary = ["mysql-testsuite"], "usr/lib/mysql-test/bin/mysqltest"
        folder, main = "usr/lib/mysql-test", "t"
    home = CACHE / "suites"
    tree = home / f"{family}-{installation.version}"
    with alone(home):
        if not tree.exists():
            print(f"Test suites of {family}: fetching Debian's packages", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=home, prefix=".partial-") as partial:
                with PrivateApt(Path(partial), suite=release) as apt:
                    apt.unpack(packages, Path(partial) / "tree", dependencies=False)
                _adapt(Path(partial) / "tree" / folder)
                (Path(partial) / "tree").rename(tree)
    client = [*program(installation.root, "")[:-1], str(tree / binary)]
    if len(client) > 1:
        client[2] = ":".join((client[2], *map(str, tree.glob("usr/lib/*-linux-gnu*"))))
    return Suites(tree / folder, tuple(client), installation, main)


def _adapt(folder: Path) -> None:
    """Let tests keep what replication stands on.

    They begin a new binary log where they would remove all, and leave gtid_mode alone: those that
    switch it off run without GTIDs anyway.
    """
    for path in folder.rglob("*"):
        if path.name.startswith("set_gtid_mode"):
            path.write_bytes(b"")
        elif path.suffix in {".test", ".inc"} and path.is_file():
            path.write_bytes(_RESET.sub(b"FLUSH BINARY LOGS", path.read_bytes()))
