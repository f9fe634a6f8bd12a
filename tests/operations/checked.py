"""Running `mtsd check` as a person would, on the servers of a test."""

import contextlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mtsd.cli.main import main
from tests.replica.daemon_process import Value, toml


class Told(NamedTuple):
    """What a check told: its exit status, and the text of each line by id."""

    status: int
    lines: dict[str, str]
    bad: dict[str, str]
    """Those that are not ok."""


def told(folder: Path, settings: Mapping[str, Value]) -> Told:
    """Run `mtsd check --json` with the settings."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        status = main(["check", "--config", str(configuration(folder, settings)), "--json"])
    document = json.loads(output.getvalue())
    lines: dict[str, str] = {}
    bad: dict[str, str] = {}
    for line in document["lines"]:
        text = f"{line['level']} {line['subject']}: {line['found']}; {line['remedy']}"
        lines[line["id"]] = text
        if line["level"] != "ok":
            bad[line["id"]] = text
    return Told(status, lines, bad)


def configuration(folder: Path, settings: Mapping[str, Value]) -> Path:
    """Write the settings to a file."""
    path = folder / "check.toml"
    path.write_text(toml(settings), encoding="utf-8")
    path.chmod(0o600)
    return path
