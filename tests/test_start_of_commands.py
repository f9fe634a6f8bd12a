"""A command starts with what it needs: the modules of the others are most of what there is."""

import pytest

from mtsd.cli.main import COMMANDS, main, module_of
from mtsd.model.outcome.exit_status import ExitStatus
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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "the following arguments are required: COMMAND; see mtsd --help"),
        ("statsu", "there is no command 'statsu'; did you mean status?; see mtsd --help"),
        ("nothing", f"there is no command 'nothing'; there are {', '.join(COMMANDS)}; see"),
        ("--config x status", "COMMAND comes before its options, as in mtsd status --config;"),
        ("status --jsno", "unrecognized arguments: --jsno; did you mean --json?; see mtsd status"),
        ("status --conf x", "arguments: --conf x; did you mean --config?; see mtsd status --help"),
        ("position set x:4 --forwrd", "did you mean --forward?; see mtsd position set --help"),
        ("status x.toml", "unrecognized arguments: x.toml; see mtsd status --help"),
        ("binlog --limit 0", "argument --limit: '0' is not a whole number from 1; see mtsd binlog"),
    ],
)
def test_wrong_words_are_told_on_one_line(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == ExitStatus.BAD_USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("mtsd: error: ")
    assert told in line
