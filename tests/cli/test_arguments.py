"""Numbers on the command line: each option says what it takes, on one line."""

import pytest

from mtsd.cli.main import main

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
