"""A command starts with what it needs: the modules of the others are most of what there is."""

import pytest

from mtsd.cli.main import COMMANDS, main, module_of
from tests.fix_commands import imported_by


def commands(modules: set[str]) -> set[str]:
    return {name for name in COMMANDS if module_of(name) in modules}


def test_the_version_needs_no_command_and_no_library() -> None:
    modules = imported_by("--version")
    assert commands(modules) == set()
    assert not modules & {"asyncio", "pydantic", "pymysqlreplication", "aiomysql", "uvloop"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_no_other_and_only_one_the_daemon(command: str) -> None:
    modules = imported_by(command, "--help")
    assert commands(modules) == {command}
    assert ("mtsd.daemon.life" in modules) == (command == "run")


def test_help_names_all_commands_and_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    modules = imported_by("--help")
    assert commands(modules) == set()
    assert "pydantic" not in modules
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert all(purpose in " ".join(told.split()) for purpose in COMMANDS.values())


@pytest.mark.parametrize("words", [["--", "status", "--help"], ["status", "--help"]])
def test_a_command_may_follow_the_end_of_options(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert "usage: mtsd status" in capsys.readouterr().out


def test_another_word_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["statsu"])
    assert "invalid choice: 'statsu'" in capsys.readouterr().err
