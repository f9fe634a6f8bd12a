"""Seeded damage: an error that is documented or the same groups, and nothing else whatsoever."""

import random
import tracemalloc
from contextlib import suppress

import pytest

from mtsd.model.errors import BinlogError
from mtsd.model.group import Group
from tests.binlog.damage import (
    Binlog,
    damaged_event,
    damaged_order,
    list_events,
    sealed_anew,
    sizes,
    use,
)

FEW = 300
MANY = 10_000
MAX_MEMORY = 24 << 20
"""Bytes; a file has 40,000."""


def damaged_bytes(rng: random.Random, binlog: Binlog) -> bytes:
    """Return the binlog with damage of any kind, checksums and framing not mended."""
    events = binlog.events()
    match rng.randrange(4):
        case 0:
            return binlog.framed(damaged_order(rng, events))
        case 1:
            return damaged_event(rng, binlog.data)
        case 2:
            at = rng.randrange(len(events))
            events[at] = damaged_event(rng, events[at])
            return binlog.framed(events)
        case _:
            for _ in range(rng.randrange(2, 6)):
                at = rng.randrange(len(events))
                events[at] = damaged_event(rng, events[at])
            return binlog.framed(damaged_order(rng, events))


def with_checksums(binlogs: list[Binlog], seeds: range) -> None:
    same = errors = 0
    for binlog in (found for found in binlogs if found.checksums):
        wanted, error = binlog.read(binlog.data, sizes(random.Random(0), 1 << 16))
        assert error is None
        for seed in seeds:
            rng = random.Random(seed)
            data = damaged_bytes(rng, binlog)
            items, error = binlog.read(data, sizes(rng, rng.choice((100, 1 << 16))))
            # Nothing but what the source wrote, in its order, each once; the end may be missing.
            assert items == wanted[: len(items)], (binlog.name, binlog.sequence, seed)
            assert not isinstance(error, BinlogError) or str(error).isprintable(), seed
            same += error is None
            errors += error is not None
    assert errors > 5 * same


def without_checksums(binlogs: list[Binlog], seeds: range) -> None:
    """Let the parsers see the damage: none of them leaves its bounds."""
    groups = errors = 0
    for binlog in binlogs:
        for seed in seeds:
            rng = random.Random(seed)
            events = binlog.events()
            for _ in range(rng.choice((1, 1, 3, 10))):
                at = rng.randrange(len(events))
                events[at] = damaged_event(rng, events[at])
            if rng.random() < 0.3:
                events = damaged_order(rng, events)
            if rng.random() < 0.9:
                events = sealed_anew(rng, events, checksums=binlog.checksums, place=seed % 4 != 0)
            hold = rng.choice((1 << 40, 1 << 40, 300))
            items, error = binlog.read(binlog.framed(events), sizes(rng, 1 << 16), hold)
            assert error is None or len(str(error)) < 5000, seed
            errors += error is not None
            for item in items:
                groups += isinstance(item, Group)
                with suppress(BinlogError):
                    use(item)
            list_events(binlog, events)
    assert errors
    assert groups > 10 * len(seeds)


def test_some_damage_to_a_binlog_with_checksums(binlogs: list[Binlog]) -> None:
    with_checksums(binlogs, range(FEW))


def test_some_damage_that_the_parsers_see(binlogs: list[Binlog]) -> None:
    without_checksums(binlogs, range(FEW // 3))


def test_damage_takes_no_memory(binlogs: list[Binlog]) -> None:
    tracemalloc.start()
    try:
        without_checksums(binlogs, range(MANY, MANY + 10))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_MEMORY


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_much_damage_to_a_binlog_with_checksums(binlogs: list[Binlog]) -> None:
    with_checksums(binlogs, range(MANY))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_much_damage_that_the_parsers_see(binlogs: list[Binlog]) -> None:
    without_checksums(binlogs, range(MANY))
