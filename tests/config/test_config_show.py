import argparse
import json
from pathlib import Path

import pytest

from mtsd.cli.arguments import load_configuration
from mtsd.cli.config import register
from mtsd.cli.main import main
from mtsd.config import FIELDS
from tests.config.conftest import Write

SECRET = "geheim-4711"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


def mtsd(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="mtsd")
    register(parser.add_subparsers(required=True))
    args = parser.parse_args(arguments)
    code: int = args.run(args)
    return code


def test_every_key_with_its_value_and_origin(
    write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(f'[source]\npassword = "{SECRET}"\nstart = "latest"\n')
    monkeypatch.setenv("MTSD_LOG__LEVEL", "debug")
    workers = "replica.parallel_workers=8"
    assert mtsd("config", "show", "--config", str(path), "--set", workers) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in out.splitlines()}
    assert list(lines) == list(FIELDS)
    found = {key: " ".join(line.split()) for key, line in lines.items()}
    assert found["source.password"] == f"******** file {path}"
    assert found["target.password"] == "(not set) default"
    assert found["source.start"] == f'"latest" file {path}'
    assert found["replica.parallel_workers"] == "8 command line"
    assert found["log.level"] == '"debug" environment variable MTSD_LOG__LEVEL'
    assert found["replica.bind"] == "[] default"
    assert SECRET not in out


def test_json(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(f'[source]\npassword = "{SECRET}"\n[replica]\nbind = [["a", "b"]]\n')
    assert mtsd("config", "show", "--config", str(path), "--json") == 0
    out = capsys.readouterr().out
    shown = json.loads(out)
    assert list(shown) == list(FIELDS)
    assert shown["source.password"] == {"value": "********", "origin": f"file {path}"}
    assert shown["target.password"] == {"value": "(not set)", "origin": "default"}
    assert shown["replica.bind"]["value"] == [["a", "b"]]
    assert shown["replica.checkpoint_period"] == {"value": 0.3, "origin": "default"}
    assert SECRET not in out


def test_errors_go_to_standard_error_and_exit_2(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(f'[source]\nport = 0\npasswort = "{SECRET}"\n')
    with pytest.raises(SystemExit) as caught:
        mtsd("config", "show", "--config", str(path), "--set", "log.level=loud")
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        (
            f"mtsd: error: source.passwort: does not exist; did you mean source.password? "
            f"(file {path})"
        ),
        f"mtsd: error: source.port: found 0; allowed is an integer from 1 to 65535 (file {path})",
        (
            'mtsd: error: log.level: found "loud"; allowed is one of "debug", "info", "warning", '
            '"error", "critical" (command line)'
        ),
    ]


def test_warnings_go_to_standard_error(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("")
    assert mtsd("config", "show", "--config", str(path), "--set", f"source.password={SECRET}") == 0
    out, err = capsys.readouterr()
    assert err.startswith("mtsd: warning: source.password is on the command line")
    assert SECRET not in out + err


@pytest.mark.parametrize(
    "arguments",
    [
        ["config"],
        ["config", "show"],
        ["config", "show", "--config", "x", "--set", SECRET],
    ],
)
def test_bad_usage_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        mtsd(*arguments)
    assert caught.value.code == 2
    assert SECRET not in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["config", "--help"], ["config", "show", "--help"]])
def test_help_has_an_example(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        mtsd(*arguments)
    assert caught.value.code == 0
    assert "mtsd config show --config" in capsys.readouterr().out.partition("example:")[2]


def test_credentials_come_from_the_environments_folder(write: Write, tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "source.password").write_text(SECRET)
    args = argparse.Namespace(
        config=write(""), overrides=[("source.host", "a"), ("source.host", "b")]
    )
    loaded = load_configuration(args, {"CREDENTIALS_DIRECTORY": str(credentials)})
    assert loaded.settings.source.password.get_secret_value() == SECRET
    assert loaded.settings.source.host == "b"


@pytest.mark.parametrize("command", ["run", "status", "binlog", "config show"])
def test_every_command_reports_the_same(
    command: str, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "source.user").write_text("")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    monkeypatch.setenv("MTSD_TARGET__PORT", "0")
    path = write(f"[target]\nhost = ''\npassword = 7\n[x]\ny = '{SECRET}'\n")
    words = [*command.split(), "--config", str(path), "--set", "log.level=loud"]
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert SECRET not in err
    reported = {line.split(": ")[2]: line.rpartition("(")[2] for line in err.splitlines()}
    assert reported == {
        "x": f"file {path})",
        "source.user": "systemd credential source.user)",
        "target.password": f"file {path})",
        "target.port": "environment variable MTSD_TARGET__PORT)",
        "log.level": "command line)",
        "target.host": f"file {path})",
    }
