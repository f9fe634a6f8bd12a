"""Nothing that a command prints moves a terminal, whatever names and errors contain."""

import ast
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mtsd.cli
from mtsd.cli.output import json_of, print_json, print_line, printable, report, report_over
from mtsd.cli.status import lines
from mtsd.control.place import Place
from mtsd.control.server_status import ConnectionsStatus, ConnectionStatus, ErrorStatus
from mtsd.control.status import DistributionStatus, PartitionStatus, Status
from mtsd.control.stop_status import InDoubtStatus, LastStopStatus, SkippedStatus, StoppedStatus

# Of a window's title and a screen, in two forms; right to left; half a character; a line's end.
HOSTILE = "x\x1b]0;owned\x07\x1b[2J\x9b2J\u202eevil\u2066\udc9b\u2028\r\n\x7f"


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("write", [print_line, report])
def test_a_line_is_one_and_harmless(
    write: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    write(f"{HOSTILE} ä 愛")
    written = "".join(capsys.readouterr())
    assert written.endswith("ä 愛\n")
    assert written.count("\n") == 1
    assert is_harmless(written)


def test_progress_ends_in_what_it_began_with(capsys: pytest.CaptureFixture[str]) -> None:
    report_over(HOSTILE)
    assert printable(HOSTILE) in capsys.readouterr().err


def test_json_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    value = {HOSTILE: [HOSTILE, "ä 愛", "\U000e0001", 1.5]}
    print_json(json_of(value, indent=2))
    written = capsys.readouterr().out
    assert is_harmless(written)
    assert "ä 愛" in written
    assert json.loads(written) == value


def test_a_terminal_that_knows_few_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", write_through=True)
    monkeypatch.setattr(sys, "stdout", written)
    print_line("near '…'")
    print_json('"…"')
    assert written.buffer.getvalue() == b"near '\\u2026'\n\"\\u2026\"\n"


def hostile_status() -> Status:
    place = Place(HOSTILE, 4, HOSTILE)
    error = ErrorStatus(1064, HOSTILE, HOSTILE)
    connection = ConnectionStatus(connected=False, since=HOSTILE, last_error=error)
    return Status(
        "failed", HOSTILE, HOSTILE, channel=HOSTILE, received=place, executed=place,
        last_error=HOSTILE, partitions=(PartitionStatus(HOSTILE, 1),),
        distribution=DistributionStatus(bind=((HOSTILE,),), pin=((HOSTILE, 1),)),
        in_doubt=(InDoubtStatus(1, 1, HOSTILE, place, HOSTILE),),
        stopped_at=StoppedStatus(1, place, HOSTILE, HOSTILE, HOSTILE, False, HOSTILE),
        skipped=(SkippedStatus(1, place, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE),),
        filter=HOSTILE, connections=ConnectionsStatus(connection, connection), warnings=(HOSTILE,),
        last_stop=LastStopStatus(HOSTILE, graceful=False, text=HOSTILE),
    )  # fmt: skip


def test_a_status_of_hostile_names(capsys: pytest.CaptureFixture[str]) -> None:
    status = hostile_status()
    for line in lines(status):
        print_line(line)
    print_json(status.to_json(indent=2))
    written = capsys.readouterr().out
    assert is_harmless(written)
    # Half a character is in no JSON text, and a program must be able to read this one.
    again = Status.from_json(written[written.index("{") :])
    assert again.source == HOSTILE.replace("\udc9b", "?")


def test_only_one_module_writes() -> None:
    folder = Path(mtsd.cli.__file__).parent
    writing = {
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"print", "sys.stdout.write", "sys.stderr.write"}
    }
    assert writing == {"output.py"}
