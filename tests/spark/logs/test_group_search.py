"""Where a read begins that is given by a time, or by what was executed before it."""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import MAGIC
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.spark.logs.folder_logs import FolderLogs
from mtsd.spark.logs.group_search import place_after_gtids, place_at_time
from mtsd.spark.logs.logs import FilesError
from tests.binlog.building import description, event
from tests.binlog.transactions import begin, gtid, in_stream, rows, table_map, xid

UUID = "11111111-1111-1111-1111-111111111111"
SECOND = 1_700_000_000
MICROSECONDS = 1_000_000


def previous_gtids(last: int) -> bytes:
    """Return what was executed before a file: all up to a number."""
    body = struct.pack("<Q", 1) + bytes.fromhex(UUID.replace("-", ""))
    body += struct.pack("<Qqq", 1, 1, last + 1)
    return event(EventType.PREVIOUS_GTIDS_LOG_EVENT, body if last else bytes(8))


def write_file(path: Path, begun: int, groups: Sequence[tuple[int, int]], before: int) -> list[int]:
    """Write a file that was begun in that second; return where its groups begin.

    Groups are GTID numbers and commit times, in microseconds since `SECOND`.
    """
    head = bytearray(description()[:-4])
    head[:4] = begun.to_bytes(4, "little")
    events = [bytes(head), previous_gtids(before)]
    for number, time in groups:
        events.append(gtid(number, commit_time=SECOND * MICROSECONDS + time))
        events += [begin(), table_map(7), rows(7, b"\0\1\0\0\0"), xid()]
    sent = in_stream(events)
    path.write_bytes(MAGIC + b"".join(sent))
    ends = [4 + sum(map(len, sent[: index + 1])) for index in range(len(sent))]
    return ends[1:-1:5]


@pytest.fixture
def log(tmp_path: Path) -> tuple[FolderLogs, list[Position]]:
    """Return three files, and where their six groups begin; the last two begin in one second."""
    places = []
    for index, (begun, before, groups) in enumerate((
        (SECOND - 9, 0, [(1, -8 * MICROSECONDS), (2, -1)]),
        (SECOND - 1, 2, [(3, 0), (4, 500_000)]),
        (SECOND, 4, [(5, 900_000), (6, 3 * MICROSECONDS)]),
    )):  # fmt: skip
        name = f"binlog.00000{index + 1}"
        places += [Position(name, at) for at in write_file(tmp_path / name, begun, groups, before)]
    return FolderLogs(str(tmp_path)), places


@pytest.mark.parametrize(
    ("time", "group"),
    [
        (-9 * MICROSECONDS, 0),
        (-8 * MICROSECONDS, 0),
        (-8 * MICROSECONDS + 1, 1),
        # Group 3 was committed in the second in which the third file was begun.
        (0, 2),
        (1, 3),
        (500_000, 3),
        (500_001, 4),
        (MICROSECONDS, 5),
    ],
)
def test_a_time(log: tuple[FolderLogs, list[Position]], time: int, group: int) -> None:
    logs, places = log
    wanted = datetime.fromtimestamp(SECOND, UTC) + timedelta(microseconds=time)
    assert place_at_time(logs, wanted) == places[group]


def test_a_time_after_the_log_and_before_it(log: tuple[FolderLogs, list[Position]]) -> None:
    logs, _ = log
    file, size = logs.files()[-1]
    late = datetime.fromtimestamp(SECOND + 60, UTC)
    assert place_at_time(logs, late) == Position(Path(file).name, size)
    with pytest.raises(FilesError, match="oldest binary log was begun after"):
        place_at_time(logs, datetime.fromtimestamp(SECOND - 10, UTC))


@pytest.mark.parametrize(
    ("executed", "group"), [("", 0), ("1", 1), ("1-2", 2), ("1-3", 3), ("1-5", 5), ("1-2:4", 2)]
)
def test_what_was_executed(
    log: tuple[FolderLogs, list[Position]], executed: str, group: int
) -> None:
    logs, places = log
    gtids = GtidSet.parse(f"{UUID}:{executed}" if executed else "")
    assert place_after_gtids(logs, gtids) == places[group]


def test_what_the_log_does_not_have(log: tuple[FolderLogs, list[Position]]) -> None:
    logs, _ = log
    with pytest.raises(FilesError, match=f"does not have {UUID}:7-9"):
        place_after_gtids(logs, GtidSet.parse(f"{UUID}:1-9"))
