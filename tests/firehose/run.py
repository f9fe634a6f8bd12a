"""Runs test files on the source of a trio, and says where mtsd's target departs from the replica's.

A finding is what only mtsd does: it stops where the server's own replica goes on, or its target
has something else than that replica's.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pymysql

from tests.firehose.history import unequal
from tests.firehose.left_out import reason
from tests.firehose.suites import Suites
from tests.firehose.trio import Trio
from tests.load.compare import differences
from tests.servers.mysqld import Server

SECONDS: Final = 60.0
"""How long one test may take."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a test.

    `left_out` is why it was not run. `ended` is what its client program said, "" for nothing.
    `native` and `mtsd` are why either replica stopped. `findings` is where only mtsd's target
    departs.
    """

    name: str
    left_out: str = ""
    ended: str = ""
    native: str = ""
    mtsd: str = ""
    findings: tuple[str, ...] = ()


class Firehose:
    """Runs tests one after another; a trio with a stopped replica is replaced by a fresh one."""

    def __init__(
        self, suites: Suites, folder: Path, binlog_format: str, *, gtids: bool = False
    ) -> None:
        self._suites = suites
        self._folder = folder
        self._format = binlog_format
        self._gtids = gtids

    def run(self, tests: Iterable[Path]) -> Iterator[Result]:
        """Yield what came of each test."""
        trio: Trio | None = None
        try:
            for number, test in enumerate(tests):
                name = self._suites.name(test)
                why = reason(test, self._suites.folder)
                if why is not None:
                    yield Result(name, left_out=why)
                    continue
                if trio is None:
                    var = self._folder / str(number)
                    trio = Trio(self._suites, var, self._format, gtids=self._gtids).__enter__()
                result, whole = self._test(trio, test, name)
                yield result
                if not whole:
                    trio.close()
                    trio = None
        finally:
            if trio is not None:
                trio.close()

    def _test(self, trio: Trio, test: Path, name: str) -> tuple[Result, bool]:
        """Return what came of it, and whether the trio is fit for the next test."""
        try:
            trio.prepare()
            ended = _play(trio, test)
            native, mtsd = trio.settle()
        except pymysql.MySQLError as error:
            return Result(name, ended=f"the source does not go on: {error}"), False
        if native or mtsd:
            findings = (f"mtsd stops: {mtsd}",) if mtsd and not native else ()
            return Result(name, "", ended, native, mtsd, findings), False
        done = unequal(*trio.histories())
        left: list[str] = []
        with suppress(pymysql.MySQLError):
            left = _differences(trio, trio.target)
            if left:
                theirs = set(_differences(trio, trio.native))
                left = [line for line in left if line not in theirs]
        return Result(name, "", ended, findings=(*done, *left)), not left


def _differences(trio: Trio, replica: Server) -> list[str]:
    # How accounts are shown in full, only MySQL knows.
    return differences(trio.source, replica, ("mtsd", "mtr"), users=not trio.mariadb)


def _play(trio: Trio, test: Path) -> str:
    """Run a test on the source; returns the end of what its client program complains of."""
    folder = trio.suites.folder
    for options in (test.with_name(f"{test.stem}-master.opt"), test.with_suffix(".opt")):
        if options.exists():
            trio.give_options(options.read_text())
    script = trio.var / "test.test"
    # What is expected to fail may succeed and the other way round: only the statements matter.
    script.write_text(f"--disable_abort_on_error\n--source {test.relative_to(folder)}\n")
    shutil.rmtree(trio.var / "tmp")
    (trio.var / "tmp").mkdir()
    words = [
        *trio.suites.client, "--no-defaults", f"--socket={trio.source.socket}", "--user=root",
        "--database=test", f"--test-file={script}", f"--basedir={folder}/",
        f"--tmpdir={trio.var / 'tmp'}", f"--logdir={trio.var / 'log'}", "--silent",
        f"--character-sets-dir={_share(trio)}/charsets",
    ]  # fmt: skip
    process = subprocess.Popen(
        words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, env=_environ(trio), start_new_session=True,
    )  # fmt: skip
    try:
        _, complaint = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"longer than {SECONDS} s"
    text = " ".join(complaint.decode(errors="replace").split())[-300:]
    return "" if process.returncode == 0 else f"{process.returncode}: {text}"


def _share(trio: Trio) -> Path:
    root = trio.suites.installation.root
    for name in ("mariadb", "mysql"):
        if root is not None and (root / "usr/share" / name / "charsets").is_dir():
            return root / "usr/share" / name
    return Path("/usr/share/mysql")


def _environ(trio: Trio) -> dict[str, str]:
    """Return what tests and their includes want to find in their environment."""
    source, share = trio.source, _share(trio)
    environ = {
        "MYSQLTEST_VARDIR": str(trio.var), "MYSQL_TMP_DIR": str(trio.var / "tmp"),
        "MYSQL_TEST_DIR": str(trio.suites.folder), "MYSQL_TEST_ROOT": str(trio.suites.folder),
        "MASTER_MYPORT": str(source.port), "MASTER_MYSOCK": str(source.socket),
        "MYSQL_CHARSETSDIR": f"{share}/charsets", "MYSQL_SHAREDIR": str(share),
        "MYSQLD_DATADIR": str(source.datadir), "DEFAULT_MASTER_PORT": str(source.port),
        "MYSQL_TEST_LOGIN_FILE": str(trio.var / "tmp/.mylogin.cnf"), "USE_RUNNING_SERVER": "0",
        "MTR_PARALLEL": "1", "LC_ALL": "C", "TZ": "GMT-3", "UMASK": "0660", "UMASK_DIR": "0770",
        # MariaDB's suite "versioning" wants a plugin that few of its statements need.
        "TEST_VERSIONING_SO": "test_versioning.so", "MTR_COMBINATION_TIMESTAMP": "1",
    }  # fmt: skip
    for variable, name in (
        ("MYSQL", "mysql"), ("MYSQL_DUMP", "mysqldump"), ("MYSQL_BINLOG", "mysqlbinlog"),
        ("MYSQLADMIN", "mysqladmin"), ("MYSQL_CHECK", "mysqlcheck"), ("MYSQL_SHOW", "mysqlshow"),
        ("MYSQL_IMPORT", "mysqlimport"), ("MYSQL_SLAP", "mysqlslap"),
    ):  # fmt: skip
        words = [*source.installation.program(name), "--no-defaults"]
        if name != "mysqlbinlog":
            words += [f"--socket={source.socket}", "--user=root"]
        environ[variable] = " ".join(words)
    return {**os.environ, **environ}
