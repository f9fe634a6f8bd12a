"""The commands of a page, and a shell for them, between servers that it calls by name."""

import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest

from mtsd.cli.main import main
from tests.replica.daemon_process import Value
from tests.servers.mysqld import Server

DOCS: Final = Path(__file__).parents[2] / "docs"
_BLOCK: Final = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


class Page:
    """A page: its blocks of commands, each a list of lines, and its settings by key."""

    def __init__(self, name: str) -> None:
        blocks = _BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
        self.steps = [text.splitlines() for language, text in blocks if language == "sh"]
        self.settings: dict[str, Value] = {
            f"{section}.{key}": value
            for language, text in blocks
            if language == "toml"
            for section, values in tomllib.loads(text).items()
            for key, value in values.items()
        }


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
            line = line.replace(f"{name}:3306", f"127.0.0.1:{server.port}")
            line = line.replace(f"'{name}':3306", f"'127.0.0.1':{server.port}")
            line = line.replace(
                f"SOURCE_HOST='{name}'", f"SOURCE_HOST='127.0.0.1', SOURCE_PORT={server.port}"
            )
        for name in ("mysqldump", "mysql"):
            program = shlex.join(self._servers["db1"].installation.program(name))
            names = f"{name}|{name.replace('mysql', 'mariadb').replace('bd', 'b-d')}"
            line = re.sub(rf"(^|\| )({names}) ", rf"\1{program} --no-defaults ", line)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line], cwd=self._folder, check=False,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        return done.stdout
