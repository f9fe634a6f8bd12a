"""Which file of settings a command reads, and how messages name it in commands."""

import argparse
import shlex
from pathlib import Path

import pytest

from mtsd.cli import arguments
from mtsd.cli.arguments import add_configuration, load_configuration
from mtsd.model.outcome.command import command, options
from tests.config.conftest import Write

SECRET = "geheim-4711"


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_configuration(parser)
    return parser.parse_args(words)


def host(args: argparse.Namespace, environ: dict[str, str]) -> str:
    return load_configuration(args, environ).settings.source.host


def test_a_file_named_nowhere(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    nowhere = tmp_path / "etc.toml"
    monkeypatch.setattr(arguments, "DEFAULT_CONFIGURATION", nowhere)
    with pytest.raises(SystemExit) as caught:
        load_configuration(parsed(), {})
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert f"has no MTSD_CONFIG, and there is no {nowhere}" in said
    nowhere.write_text('[source]\nhost = "c"\n')
    assert host(parsed(), {}) == "c"
    named = write('[source]\nhost = "b"\n')
    assert host(parsed(), {"MTSD_CONFIG": str(named)}) == "b"
    assert host(parsed("--config", str(nowhere)), {"MTSD_CONFIG": str(named)}) == "c"
    # A name that was given is never replaced by another.
    with pytest.raises(SystemExit):
        load_configuration(parsed(), {"MTSD_CONFIG": str(tmp_path / "none.toml")})
    assert "none.toml: cannot be read" in capsys.readouterr().err


def test_a_command_in_a_message_has_the_same_configuration(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("")
    folder = tmp_path / "a b"
    folder.mkdir()
    path = path.rename(folder / path.name)
    monkeypatch.chdir(folder)
    words = ["--config", path.name, "--set", "replica.channel=it's", "--set", "target.tls_ca=ca"]
    words += ["--set", f"source.password={SECRET}"]
    environ = {
        "MTSD_TARGET__PORT": "3307", "MTSD_TARGET__PASSWORD": SECRET, "MTSD_REPLICA__CHANNEL": "x"
    }  # fmt: skip
    said = {
        "--config": [str(path)],
        "--set": [
            "target.port=3307", "replica.channel=it's", f"target.tls_ca={folder / 'ca'}",
            "source.password=SECRET",
        ],
    }  # fmt: skip
    args = parsed(*words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arguments, "load", lambda *_: argparse.Namespace(warnings=()))
        load_configuration(args, environ)
    first, *rest = shlex.split(command("skip", "--group", "7", "--reason", "TEXT"))
    assert (first, rest[:5]) == ("mtsd", ["skip", "--group", "7", "--reason", "TEXT"])
    names, values = rest[5::2], rest[6::2]
    for name, expected in said.items():
        found = [value for each, value in zip(names, values, strict=True) if each == name]
        assert sorted(found) == sorted(expected)
    assert SECRET not in options()
