"""A binlog that ends anywhere: what was whole is there, nothing else is, and a file says so."""

import random

import pytest

from mtsd.binlog.bytes.framing import FileFramer
from mtsd.model.errors import BinlogError
from mtsd.model.group import Group, StreamItem
from tests.binlog.damage import Binlog, sizes


def whole(binlog: Binlog, hold_bytes: int = 1 << 40) -> list[StreamItem]:
    items, error = binlog.read(binlog.data, sizes(random.Random(1), 1 << 16), hold_bytes)
    assert error is None
    assert sum(isinstance(item, Group) for item in items) > 5
    return items


def ends(binlog: Binlog) -> set[int]:
    """Return where the binlog may end without a word."""
    found = {4} if binlog.sequence is None else {0}
    at = 4 if binlog.sequence is None else 0
    for event in binlog.events():
        at += len(event) + (0 if binlog.sequence is None else 5)
        found.add(at)
    return found


def check(binlog: Binlog, wanted: list[StreamItem], size: int, rng: random.Random) -> None:
    largest = rng.choice((2, 30, 4000, 1 << 17))
    items, error = binlog.read(binlog.data[:size], sizes(rng, largest))
    assert items == wanted[: len(items)]
    if binlog.sequence is None:
        assert (error is None) == (size in ends(binlog))
        assert error is None or "ends inside an event" in str(error)
    else:
        assert error is None


@pytest.mark.parametrize("hold_bytes", [1 << 40, 200])
def test_byte_by_byte_every_end_is_seen(binlogs: list[Binlog], hold_bytes: int) -> None:
    for binlog in binlogs:
        wanted = whole(binlog, hold_bytes)
        may_end = ends(binlog)
        framer = FileFramer()
        cut = framer.feed if binlog.sequence is None else binlog.feeder()
        reader = binlog.grouper(hold_bytes, max(hold_bytes // 4, 1))
        found = 0
        for at in range(len(binlog.data)):
            for item in reader.groups(list(cut(binlog.data[at : at + 1]))):
                assert item == wanted[found]
                found += 1
            if binlog.sequence is None:
                if at + 1 in may_end:
                    framer.finish()
                else:
                    with pytest.raises(BinlogError, match="the file ends inside an event"):
                        framer.finish()
        assert found == len(wanted)


def test_some_ends_in_pieces_of_any_size(binlogs: list[Binlog]) -> None:
    rng = random.Random(2)
    for binlog in binlogs:
        wanted = whole(binlog)
        near = {end + more for end in rng.sample(sorted(ends(binlog)), 15) for more in (-1, 0, 1)}
        for size in near | set(rng.sample(range(len(binlog.data)), 60)):
            check(binlog, wanted, min(max(size, 0), len(binlog.data)), rng)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_end_in_pieces_of_any_size(binlogs: list[Binlog]) -> None:
    rng = random.Random(3)
    for binlog in binlogs:
        wanted = whole(binlog)
        # In one piece each of them is read by the test above; this reads a file anew for each.
        for size in rng.sample(range(len(binlog.data)), 2000):
            check(binlog, wanted, size, rng)
