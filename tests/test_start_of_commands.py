"""A command starts with what it needs: the modules of the others are most of what there is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mtsd.cli.main import COMMANDS

SAYS_WHAT_IS_IMPORTED = """
import json, sys
from mtsd.__main__ import main
try:
    main()
finally:
    print(json.dumps(list(sys.modules)), file=sys.stderr)
"""


def imported_by(*arguments: str) -> set[str]:
    """Run `mtsd` in a process of its own; returns the modules that are imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", SAYS_WHAT_IS_IMPORTED, *arguments],
        env={name: value for name, value in os.environ.items() if "MTSD_" not in name},
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    modules = next(line for line in done.stderr.splitlines() if line.startswith('["'))
    return set(json.loads(modules))


def commands(modules: set[str]) -> set[str]:
    return {name for name in COMMANDS if f"mtsd.cli.{name}" in modules}


def test_the_version_needs_no_command_and_no_library() -> None:
    modules = imported_by("--version")
    assert commands(modules) == set()
    assert not modules & {"asyncio", "pydantic", "pymysqlreplication", "aiomysql", "uvloop"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_no_other_and_only_one_the_daemon(command: str) -> None:
    modules = imported_by(command, "--help")
    assert commands(modules) == {command}
    assert ("mtsd.daemon.life" in modules) == (command == "run")


def test_help_names_all_commands() -> None:
    assert commands(imported_by("--help")) == set(COMMANDS)
