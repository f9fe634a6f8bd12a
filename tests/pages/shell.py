"""A shell for the lines of a page, between servers that it calls by name."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from mtsd.cli.main import main
from tests.servers.mysqld import Server


class Shell:
    """Runs the page's lines in `folder`, between `servers` that it calls by these names."""

    def __init__(
        self, folder: Path, servers: dict[str, Server], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._folder = folder
        self._servers = servers
        self._capsys = capsys

    def run(self, *lines: str) -> str:
        """Run lines; return what the last one prints. A command of mtsd runs in this process."""
        said = ""
        for line in lines:
            said = self._line(line)
        return said

    def _line(self, line: str) -> str:
        if not line.startswith("mtsd "):
            return self._bash(line)
        command, _, file = line.partition(" > ")
        words = self._bash(f"printf '%s\\n' {command}").splitlines()[1:]
        self._capsys.readouterr()
        status = main(words)
        told = self._capsys.readouterr()
        assert status == 0, told
        if file:
            (self._folder / file).write_text(told.out)
        return told.out

    def _bash(self, line: str) -> str:
        for name, server in self._servers.items():
            line = line.replace(f"--host={name}", f"--socket={server.socket}")
        for name in ("mysqldump", "mysql"):
            program = shlex.join(self._servers["db1"].installation.program(name))
            line = re.sub(rf"(^|\| ){name} ", rf"\1{program} --no-defaults ", line)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line], cwd=self._folder, check=False,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        return done.stdout
