"""Options and their values: each says what it takes, on one line."""

from pathlib import Path

import pytest

from mtsd.cli.main import main
from mtsd.model.outcome.exit_status import ExitStatus

SECONDS = [
    ("takeover", "--timeout"),
    ("handover", "--watch"),
    ("switchover", "--max-lag"),
    ("switchover", "--longest"),
    ("switchover", "--grace"),
    ("plan", "--measure"),
    ("top", "--interval"),
]
WHOLE = [
    ("handover", "--replica-port"),
    ("skip", "--group"),
    ("resolve", "--group"),
    ("binlog", "--group"),
    ("binlog", "--limit"),
    ("plan", "--workers"),
    ("plan", "--batches"),
    ("plan", "--groups"),
    ("plan", "--processors"),
    ("plan", "--target-processors"),
]
TOO_MANY = "9" * 5000


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        *((*option, value) for option in SECONDS for value in ("nan", "inf", "-1", "1e400", "5s")),
        *((*option, value) for option in WHOLE for value in ("-1", "2.0", "x", TOO_MANY)),
        ("plan", "--workers", "1,1025"),
        ("handover", "--replica-port", "65536"),
        ("takeover", "--timeout", "0"),
    ],
)
def test_what_an_option_takes(
    command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, f"{option}={value}"])
    assert caught.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"argument {option}: {value[:80]!r} is not a" in said


LOG = "docs/example/binlog.000001"


def ended(words: list[str]) -> object:
    """Run a command, and return its exit status."""
    try:
        return main(words)
    except SystemExit as left:
        return left.code


@pytest.mark.parametrize(
    ("words", "told"),
    [
        # A shell's variable that is not set.
        (["status", "--config="], "argument --config: a name is needed"),
        (["binlog", ""], "argument FILE: a name is needed"),
        (["binlog", LOG, "--database="], "argument --database: a name is needed"),
        (["binlog", LOG, "--gtid="], "argument --gtid: '': a GTID set is needed"),
        (["position", "set", "--from="], "argument --from: a name is needed"),
        (["distribute", "pin", "", "1"], "argument DATABASE: a name is needed"),
        (["distribute", "weigh", "a", "1.5"], "argument WEIGHT: '1.5' is not a whole number"),
        (["plan", LOG, "--master=nonsense"], "argument --master: 'nonsense' is no master of Spark"),
        # What would have no effect.
        (["binlog", LOG, "--set=source.port=1"], "--set is for the settings of a server"),
        (["plan", LOG, "--set=source.port=1"], "--set is for the settings of a server"),
        (["binlog", LOG, "--group=1"], "--group needs the source's binary log"),
        # What is found out too late otherwise: while no application may write.
        (["switchover", "--start=a 'b"], 'argument --start: "a \'b": No closing quotation'),
        (["switchover", "--start=no-such-program x"], "there is no program 'no-such-program'"),
    ],
)
def test_what_is_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(words) == ExitStatus.BAD_USAGE
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("mtsd: error: ")
    assert told in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["position", "set", "latest", "--although-missing"], "--although-missing is for --from"),
        (["takeover", "--admin-password-file=x"], "--admin-password-file needs --admin-user"),
        (
            ["handover", "--admin-user=root", "--admin-password-file=/nowhere"],
            "--admin-password-file: /nowhere: cannot be read: No such file or directory",
        ),
    ],
)
def test_what_is_refused_beside_a_configuration(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    assert ended([*words, "--config", str(config)]) == ExitStatus.BAD_USAGE
    assert told in capsys.readouterr().err


def test_a_selection_that_nothing_fulfils(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["binlog", LOG, "--table=shop.nothing"]) == ExitStatus.DONE
    assert main(["binlog", LOG, "--position=binlog.000001:5"]) == ExitStatus.FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "mtsd: no group of binlog.000001 fulfils all that was asked for",
        "mtsd: error: a group that ends at binlog.000001:5 is not in binlog.000001",
    ]
