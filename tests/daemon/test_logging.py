import asyncio
import io
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
import structlog

from mtsd.config import LogSettings
from mtsd.daemon.logging import set_up_logging


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, ours = root.handlers[:], root.level, logging.getLogger("mtsd").level
    yield
    logging.captureWarnings(capture=False)
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("mtsd").setLevel(ours)


def _set_up(
    form: Literal["auto", "console", "json"] = "json",
    level: Literal["debug", "info", "warning"] = "info",
    stream: io.StringIO | None = None,
) -> io.StringIO:
    stream = stream or io.StringIO()
    set_up_logging(LogSettings(level=level, format=form), stream)
    return stream


def _ours() -> structlog.stdlib.BoundLogger:
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("mtsd.test")
    return logger


def _records(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_record_is_one_line_with_time_level_and_context() -> None:
    stream = _set_up()
    structlog.contextvars.bind_contextvars(channel="c1", worker=3, gtid="u:7")
    _ours().info("committed\ntwice", groups=2, raw=b"\xff")
    (record,) = _records(stream)
    assert list(record)[:3] == ["timestamp", "level", "event"]
    when = datetime.fromisoformat(str(record.pop("timestamp")))
    assert when.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - when) < timedelta(minutes=1)
    assert record == {
        "level": "info",
        "event": "committed\ntwice",
        "logger": "mtsd.test",
        "channel": "c1",
        "worker": 3,
        "gtid": "u:7",
        "groups": 2,
        "raw": r"b'\xff'",
    }


def test_a_traceback_is_in_the_record_without_local_variables() -> None:
    stream = _set_up()
    password = "hunter2"  # what must not be seen
    try:
        raise RuntimeError(f"only its length is told: {len(password)}")
    except RuntimeError:
        _ours().exception("failed")
    (record,) = _records(stream)
    exceptions = record["exception"]
    assert isinstance(exceptions, list)
    assert exceptions[0]["exc_type"] == "RuntimeError"
    assert exceptions[0]["frames"][0]["name"] == _name_of_this_test()
    assert "hunter2" not in stream.getvalue()


def _name_of_this_test() -> str:
    return test_a_traceback_is_in_the_record_without_local_variables.__name__


def test_libraries_are_heard_when_they_warn() -> None:
    stream = _set_up(level="debug")
    structlog.contextvars.bind_contextvars(channel="c1")
    logging.getLogger("asyncio.server").debug("chatter")
    logging.getLogger("asyncio").info("chatter")
    logging.getLogger("aiomysql").warning("lost %s", "it")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("old", UserWarning, stacklevel=1)
    records = _records(stream)
    assert [record["logger"] for record in records] == ["aiomysql", "py.warnings"]
    assert records[0]["event"] == "lost it"
    assert records[0]["channel"] == "c1"
    assert "UserWarning: old" in str(records[1]["event"])


async def test_an_error_in_a_callback_of_the_loop_is_a_record() -> None:
    stream = _set_up()

    def fail() -> None:
        raise ValueError("in a callback")

    asyncio.get_running_loop().call_soon(fail)
    await asyncio.sleep(0)
    (record,) = _records(stream)
    assert record["logger"] == "asyncio"
    assert "in a callback" in json.dumps(record["exception"])


def test_the_console_has_one_line_a_record_and_the_traceback_after_it() -> None:
    stream = _set_up("console")
    _ours().info("committed\ntwice", groups=2)
    try:
        raise RuntimeError("no")
    except RuntimeError:
        _ours().exception("failed")
    first, second, *traceback = stream.getvalue().splitlines()
    line = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+Z) \[(\w+) *] (.*?) +\[mtsd\.test](.*)")
    found = line.fullmatch(first)
    assert found
    assert (found[2], found[3], found[4]) == ("info", "committed twice", " groups=2")
    assert "failed" in second
    assert traceback[0].startswith("Traceback")
    assert traceback[-1] == "RuntimeError: no"


def test_auto_is_the_console_on_a_terminal_and_json_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert _records(_written("auto", io.StringIO()))[0]["event"] == "hello"
    assert "\x1b[" in _written("auto", _Terminal()).getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in _written("auto", _Terminal()).getvalue()
    assert _records(_written("json", _Terminal()))[0]["event"] == "hello"
    assert "\x1b[" not in _written("console", io.StringIO()).getvalue()


def _written(form: Literal["auto", "console", "json"], stream: io.StringIO) -> io.StringIO:
    _set_up(form, stream=stream)
    _ours().info("hello")
    return stream


def test_level_and_format_change_for_loggers_that_are_there() -> None:
    logger = _ours()
    stream = _set_up(level="warning")
    logger.info("not heard")
    set_up_logging(LogSettings(level="debug", format="console"), stream)
    logger.debug("heard")
    (line,) = stream.getvalue().splitlines()
    assert "[debug" in line
    assert "heard" in line


@pytest.mark.parametrize("form", ["console", "json"])
@pytest.mark.parametrize("terminal", [True, False])
def test_names_of_a_source_leave_a_record_on_one_line_and_the_cursor_where_it_is(
    form: Literal["console", "json"], terminal: bool
) -> None:
    stream = _set_up(form, stream=_Terminal() if terminal else io.StringIO())
    name = "a'`\"b\n\x1b[2J\x85\u2028\0\udcff😀"
    _ours().error(f"databases {name}", database=name)
    line, end = stream.getvalue().split("\n")
    assert end == ""
    bare = re.sub(r"\x1b\[\d*m", "", line) if terminal else line
    assert bare.isprintable()
    assert "😀" in bare or form == "json"


def test_records_that_nobody_takes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe, os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        set_up_logging(LogSettings(level="info", format="json"))
        for number in range(20_000):
            _ours().info("taken", number=number)
        taken, lost = [], 0
        for line in pipe:
            record = json.loads(line)
            if record["event"] != "taken":
                assert record["level"] == "warning"
                lost = record["records"]
                break
            taken.append(record["number"])
        assert taken == list(range(len(taken)))
        assert 10_000 < len(taken) < 20_000
        assert len(taken) + lost == 20_000


def test_each_line_has_its_priority_where_the_journal_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def logged(form: Literal["console", "json"]) -> list[str]:
        with (tmp_path / form).open("w+") as stream:
            found = os.fstat(stream.fileno())
            monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
            set_up_logging(LogSettings(level="debug", format=form), stream)
            _ours().debug("a")
            _ours().info("b")
            _ours().warning("c")
            logging.getLogger("aiomysql").error("d")
            _ours().critical("e")
            try:
                raise RuntimeError("f")
            except RuntimeError:
                _ours().exception("g")
            return (tmp_path / form).read_text().splitlines()

    lines = logged("json")
    assert [line[:3] for line in lines] == ["<7>", "<6>", "<4>", "<3>", "<2>", "<3>"]
    assert json.loads(lines[3][3:])["event"] == "d"
    shown = logged("console")
    assert [line[:3] for line in shown[:5]] == ["<7>", "<6>", "<4>", "<3>", "<2>"]
    # Also of the lines of a traceback.
    assert len(shown) > 6
    assert {line[:3] for line in shown[5:]} == {"<3>"}
    # A pipe of somebody else's, below a service whose log goes to the journal.
    assert not _set_up().getvalue().startswith("<")
    monkeypatch.setenv("JOURNAL_STREAM", "1:1")
    with (tmp_path / "file").open("w+") as stream:
        set_up_logging(LogSettings(format="json"), stream)
        _ours().warning("c")
    assert (tmp_path / "file").read_text().startswith("{")
