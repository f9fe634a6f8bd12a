"""Whether files belong behind each other, by what is at their ends and beginnings."""

import pytest

from mtsd.binlog.files.file_end import FileEnd
from mtsd.binlog.files.file_order import FileBeginning, misnamed, out_of_order
from mtsd.model.gtid import Gtid, GtidSet

UUID = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("name", "next_file", "following", "is_wrong"),
    [
        ("binlog.000001", "binlog.000002", "binlog.000002", False),
        ("binlog.999999", "binlog.1000000", "", False),
        ("binlog.000001", "", "binlog.000002", False),
        ("binlog.000001", "binlog.000003", "", True),
        ("binlog.000001", "binlog.000002", "binlog.000003", True),
        # Copies may have another base, or any name.
        ("db1-bin.000001", "binlog.000002", "db1-bin.000002", False),
        ("copy", "binlog.000002", "", False),
        ("copy", "binlog.000003", "binlog.000002", True),
    ],
)
def test_what_a_rotate_event_names(
    name: str, next_file: str, following: str, *, is_wrong: bool
) -> None:
    assert bool(misnamed(name, FileEnd(next_file), following)) == is_wrong
    assert not misnamed(name, None, following)


def beginning(gtids: str, first: str = "", time: int = 0) -> FileBeginning:
    gtid = Gtid.parse(first) if first else None
    return FileBeginning(by_a_server=True, time=time, previous=GtidSet.parse(gtids), first=gtid)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (beginning("", f"{UUID}:1"), beginning(f"{UUID}:1-5", f"{UUID}:6"), ""),
        (beginning(f"{UUID}:1-9"), beginning(f"{UUID}:1-5"), "less was executed before"),
        (beginning(f"{UUID}:1-5", f"{UUID}:6"), beginning(f"{UUID}:1-5"), "was not executed"),
        (beginning("0-1-5", "0-2-6"), beginning("0-1-5,0-2-9"), ""),
        (beginning("0-1-5,1-1-7"), beginning("0-1-9"), ""),
        (beginning("0-1-9"), beginning("0-1-5"), "less was executed before"),
        (beginning("0-1-5", "0-1-6"), beginning("0-1-5"), "was not executed"),
        (beginning("", time=5), beginning("", time=9), ""),
        (beginning("", time=9), beginning("", time=9), "is not newer"),
        (FileBeginning(by_a_server=True, time=9), beginning("", time=5), ""),
    ],
)
def test_what_was_executed_before(before: FileBeginning, after: FileBeginning, says: str) -> None:
    found = out_of_order(before, FileEnd(), "f", after)
    assert says in found
    assert bool(says) == bool(found)


def test_a_server_may_rotate_several_times_in_a_second() -> None:
    file = beginning("", time=9)
    assert not out_of_order(file, FileEnd("f"), "f", file)
