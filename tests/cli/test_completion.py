"""Completion is made of the commands' own parsers, and bash really completes with it."""

import subprocess
from pathlib import Path

import pytest

from mtsd.cli.completion import whole_parser
from mtsd.cli.main import COMMANDS, main
from mtsd.cli.shells.scripts import SCRIPTS, spots_of

ASKED = {
    "mtsd po": "position",
    "mtsd position se": "set",
    "mtsd position set --fr": "--from",
    "mtsd --config config.toml status --js": "--json",
    "mtsd config show --j": "--json",
    "mtsd completion f": "fish",
    "mtsd support-bundle --un": "--unit",
    # The value of an option is a file, which is left to bash.
    "mtsd run --config r": "",
}


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "mtsd.bash").write_text(script("bash", capsys))
    lines = [f"source {file}"]
    for asked in ASKED:
        words = asked.split()
        lines += [
            f"COMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _mtsd",
            'echo "${COMPREPLY[*]}"',
        ]
    done = subprocess.run(
        ["bash", "-uc", "\n".join(lines)], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == list(ASKED.values())


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_command_and_option_is_there(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    written = script(shell, capsys)
    spots = list(spots_of(whole_parser(), ("mtsd",)))
    assert {name for name, _ in spots[0].words} == set(COMMANDS)
    assert {("mtsd", "position", "set"), ("mtsd", "config", "show")} <= {s.path for s in spots}
    for spot in spots:
        for option in spot.options:
            assert all(name.lstrip("-") in written for name in option.names)
