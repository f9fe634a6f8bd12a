"""What is on its way: every interleaving of sending, running, failing, answering and crashing."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.model.group import Group, GroupKind
from mtsd.schedule.batches.in_flight import MAX_PACKETS, Batch, InFlight
from mtsd.schedule.done.worker_row import blank_row
from mtsd.schedule.limits import Limits
from tests.schedule.worlds.exploring import explore, name_of, restart
from tests.schedule.worlds.pipelined_run import PipelinedRun
from tests.schedule.worlds.simulated_run import Mode, RunSettings
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import FORMAT, START_MARK, Marker, Shape, Stream, group

A = Shape(("a",))
B = Shape(("b",))
LARGE = Shape(("a",), size=1 << 16)
MIXED = Shape(("a",), row_flags=None)
OTHER = Shape(("a",), format_description=b"another")
DDL = Shape(("a",), kind=GroupKind.DDL)
SINGLE = Limits(checkpoint_group=99, pending_jobs_size_max=1 << 30, batch_groups=1, batch_bytes=1)
PAIRS = Limits(
    checkpoint_group=99, pending_jobs_size_max=1 << 30, batch_groups=2, batch_bytes=1 << 20
)


def crash_anywhere(shapes: Sequence[Shape | Marker], settings: RunSettings) -> None:
    """Go through every state of a run, and restart from each that a crash can leave.

    The server goes on with what was sent when the daemon is dead; these states are among them.
    """
    stream = Stream.of(shapes)
    left = explore(stream, SimulatedTarget(), settings, checkpoints=False, run=PipelinedRun)
    for target in left.values():
        restart(stream, target, RunSettings(workers=2))


@pytest.mark.parametrize(
    "shapes",
    [
        (A, A, A),
        (A, A, A, A),
        (LARGE, LARGE, LARGE, A),
        (A, MIXED, A, A),
        (A, OTHER, OTHER, A),
        (A, A, DDL, A),
        (DDL, DDL, A, A),
        (MIXED, MIXED, LARGE),
        (LARGE, A, OTHER),
    ],
    ids=name_of,
)
@pytest.mark.parametrize("limits", [SINGLE, PAIRS], ids=["one by one", "pairs"])
def test_one_worker(shapes: tuple[Shape, ...], limits: Limits) -> None:
    crash_anywhere(shapes, RunSettings(mode=Mode.SEQUENTIAL, limits=limits))


@pytest.mark.parametrize("shapes", [(A, B, A, B), (A, A, B, LARGE)], ids=name_of)
def test_two_workers(shapes: tuple[Shape, ...]) -> None:
    crash_anywhere(shapes, RunSettings(workers=2, limits=SINGLE))


def test_the_mark_passes_what_is_owed() -> None:
    """A group whose place in the row is owed may be proven by the low-water mark alone."""
    stream = Stream.of((DDL, B, A))
    for workers in (1, 2):
        settings = RunSettings(workers=workers, limits=SINGLE)
        left = explore(stream, SimulatedTarget(), settings, run=PipelinedRun)
        assert any(target.recorded and target.mark.number for target in left.values())
        for target in left.values():
            restart(stream, target, RunSettings(workers=2))


@pytest.mark.parametrize(
    "shapes", [(A, A, A, A), (MIXED, A, OTHER, A), (A, DDL, A, A)], ids=name_of
)
@pytest.mark.parametrize("limits", [SINGLE, PAIRS], ids=["one by one", "pairs"])
def test_commits_that_overlap(shapes: tuple[Shape, ...], limits: Limits) -> None:
    crash_anywhere(shapes, RunSettings(mode=Mode.SEQUENTIAL, limits=limits, overlaps=True))


def test_commits_that_overlap_in_order_over_two_workers() -> None:
    settings = RunSettings(workers=2, limits=SINGLE, overlaps=True, in_order=True)
    crash_anywhere((A, B, A, A), settings)


@pytest.mark.long
@pytest.mark.parametrize(
    "shapes",
    [(A, A, A, A, A, A), (LARGE, LARGE, A, A, LARGE), (A, MIXED, OTHER, A, DDL), (A, A, B, A, B)],
    ids=name_of,
)
@pytest.mark.parametrize("limits", [SINGLE, PAIRS], ids=["one by one", "pairs"])
def test_more_groups(shapes: tuple[Shape, ...], limits: Limits) -> None:
    crash_anywhere(shapes, RunSettings(mode=Mode.SEQUENTIAL, limits=limits))
    crash_anywhere(shapes, RunSettings(workers=2, limits=limits))


ROW = replace(blank_row(1, START_MARK), token=7)


def groups(*shapes: Shape) -> list[Group]:
    return Stream.of(shapes).groups


def packed(flight: InFlight, batches: list[Batch]) -> list[list[int]]:
    """Send and commit everything; return the numbers of the groups in each packet."""
    packets = []
    for batch in batches:
        flight.begin(batch)
    while flight.has_begun:
        gathered = flight.gather(tuple, shared=True)
        packet = flight.packet(gathered, START_MARK)
        flight.sent(packet, 1)
        packets.append([g.number for each in packet.transactions for g in each.batch])
        for _ in packet.transactions:
            flight.committed()
    return packets


def test_what_cannot_share_a_packet_keeps_its_place() -> None:
    batches: list[Batch] = [(each,) for each in groups(A, MIXED, A, A, OTHER, A)]
    assert packed(InFlight(ROW), batches) == [[1], [2], [3, 4], [5], [6]]


def test_no_batches_share_a_packet_unless_they_may() -> None:
    first, second = groups(A, A)
    flight = InFlight(ROW)
    flight.begin((first,))
    flight.begin((second,))
    assert flight.gather(tuple, shared=False) == [(first,)]
    assert flight.next_begun() == (second,)


@given(st.lists(st.sampled_from([A, A, A, MIXED, OTHER, LARGE]), max_size=30))
@settings(deadline=None)
def test_the_order_is_kept(shapes: list[Shape]) -> None:
    found = packed(InFlight(ROW), [(each,) for each in groups(*shapes)])
    assert [number for packet in found for number in packet] == list(range(1, len(shapes) + 1))


def test_only_the_last_transaction_of_a_packet_moves_the_token() -> None:
    flight = InFlight(ROW)
    first = flight.packet([(each,) for each in groups(A, A, A)], START_MARK)
    assert [each.before.token for each in first.transactions] == [7, 7, 7]
    assert [each.row.token for each in first.transactions] == [7, 7, 8]
    flight.sent(first, 1)
    stream = Stream.of([A] * 5)
    second = flight.packet([(stream.groups[3],), (stream.groups[4],)], START_MARK)
    assert [each.before.token for each in second.transactions] == [8, 8]
    assert [each.row.token for each in second.transactions] == [8, 9]


def test_what_may_follow() -> None:
    one, two, three, other = groups(A, A, A, OTHER)
    flight = InFlight(ROW)
    packet = flight.packet([(one,)], START_MARK)
    assert flight.may_send(packet, single_statements=False)
    flight.sent(packet, 3)
    behind = flight.packet([(two,)], START_MARK)
    assert not flight.may_send(behind, single_statements=False)
    assert not flight.may_send(flight.packet([(other,)], START_MARK), single_statements=True)
    assert flight.may_send(behind, single_statements=True)
    flight.sent(behind, 1)
    assert flight.packets == MAX_PACKETS
    assert not flight.wants_more
    assert not flight.may_send(flight.packet([(three,)], START_MARK), single_statements=True)
    with pytest.raises(ValueError, match="in flight"):
        flight.applied(ROW)
    assert flight.failed() == [(one,), (two,)]
    assert flight.is_empty
    assert flight.row == ROW
    assert one.format_description == FORMAT


def test_what_is_owed_goes_into_the_row_with_the_next_transaction() -> None:
    owed, one, two = groups(DDL, A, A)
    flight = InFlight(ROW)
    flight.owe(owed, START_MARK)
    assert flight.owed == owed.number
    assert flight.row == ROW
    with pytest.raises(ValueError, match="something is before it"):
        flight.owe(one, START_MARK)
    packet = flight.packet([(one,), (two,)], START_MARK)
    first, second = packet.transactions
    # What is not on the target yet must not be taken for what the row there contains.
    assert first.before == ROW
    assert list(first.row.executed) == [owed.number, one.number]
    assert second.before == first.row
    flight.sent(packet, 1)
    flight.failed()
    assert flight.owed
    flight.sent(packet, 1)
    flight.committed()
    assert not flight.owed


def test_a_group_commits_once() -> None:
    flight = InFlight(ROW)
    (one,) = groups(A)
    flight.sent(flight.packet([(one,)], START_MARK), 1)
    with pytest.raises(ValueError, match="has already committed"):
        flight.packet([(group(1, "a"),)], START_MARK)
