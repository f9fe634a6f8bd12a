from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.model.errors import BinlogError
from mtsd.wire import framing
from mtsd.wire.framing import PacketFramer

FULL = 0xFFFFFF


def packet(sequence: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes((sequence & 0xFF,)) + payload


def stream(payloads: list[bytes], sequence: int) -> bytes:
    return b"".join(packet(sequence + index, payload) for index, payload in enumerate(payloads))


@given(
    st.lists(st.binary(max_size=40), max_size=12),
    st.integers(0, 255),
    st.lists(st.integers(0, 300), max_size=12),
)
@settings(deadline=None)
def test_any_split_gives_the_same_payloads(
    payloads: list[bytes], sequence: int, cuts: list[int]
) -> None:
    data = stream(payloads, sequence)
    framer = PacketFramer(sequence)
    found: list[bytes] = []
    for begin, end in pairwise([0, *sorted(cuts), len(data)]):
        found += framer.feed(data[begin:end])
    assert found == payloads


def test_the_sequence_wraps_around() -> None:
    payloads = [bytes((number & 0xFF,)) for number in range(600)]
    framer = PacketFramer(250)
    assert framer.feed(stream(payloads, 250)) == payloads


@pytest.mark.parametrize("wrong", [0, 6, 255])
def test_a_wrong_sequence_number(wrong: int) -> None:
    framer = PacketFramer(4)
    assert framer.feed(packet(4, b"x")) == [b"x"]
    with pytest.raises(BinlogError, match=f"packet number {wrong} instead of 5"):
        framer.feed(packet(wrong, b"y"))


@pytest.mark.parametrize("tail", [0, 1, 1000])
def test_a_payload_of_several_packets(tail: int) -> None:
    first, second, last = bytes(FULL), b"\1" * FULL, b"\2" * tail
    data = packet(255, first) + packet(0, second) + packet(1, last) + packet(2, b"next")
    framer = PacketFramer(255)
    found: list[bytes] = []
    for at in range(0, len(data), 1 << 18):
        found += framer.feed(data[at : at + (1 << 18)])
    assert [len(payload) for payload in found] == [2 * FULL + tail, 4]
    assert found[0] == first + second + last
    assert found[1] == b"next"


def test_a_payload_larger_than_any_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_PAYLOAD", FULL + 5)
    assert PacketFramer(0).feed(packet(0, bytes(FULL)) + packet(1, bytes(5))) == [bytes(FULL + 5)]
    with pytest.raises(BinlogError, match="a packet larger than"):
        PacketFramer(0).feed(packet(0, bytes(FULL)) + packet(1, bytes(6)))


def test_pieces_are_joined_once_a_packet() -> None:
    data = packet(0, bytes(1000))
    framer = PacketFramer(0)
    for at in range(0, 1000, 10):
        assert framer.feed(data[at : at + 10]) == []
    assert len(framer._parts) == 100
    assert framer.feed(data[1000:]) == [bytes(1000)]


def test_empty_packets_are_payloads_too() -> None:
    assert PacketFramer(0).feed(packet(0, b"") + packet(1, b"")) == [b"", b""]


def test_nothing_yet() -> None:
    framer = PacketFramer(0)
    data = packet(0, b"whole")
    assert [framer.feed(data[at : at + 1]) for at in range(len(data))] == [[]] * 8 + [[b"whole"]]


def test_the_first_byte_of_a_payload_of_several_packets_is_judged_with_it() -> None:
    """Of an event of 16 MiB and more: what continues it is no packet of its own."""
    first, last = bytes(FULL), b"\2" * 10
    framer = PacketFramer(0, status=lambda payload: payload[1:])
    data = packet(0, b"\0a") + packet(1, first) + packet(2, last) + packet(3, b"\0b")
    assert framer.feed(data) == [b"a", first[1:] + last, b"b"]


def test_semi_sync_heads_are_left_out_and_noted() -> None:
    def event(end: int, body: bytes = b"") -> bytes:
        return bytes(13) + end.to_bytes(4, "little") + bytes(2) + body

    heads = [(event(100), 0), (event(200), 1), (event(300, bytes(FULL)), 1), (event(400), 0)]
    data = b""
    sequence = 7
    for each, flag in heads:
        payload = b"\0\xef%c" % flag + each
        while True:
            data += packet(sequence, payload[:FULL])
            sequence += 1
            if len(payload) < FULL:
                break
            payload = payload[FULL:]
        if flag:
            # The acknowledgement has number 0.
            sequence = 1
    framer = PacketFramer(7, lambda payload: payload[1:], semi_sync=True)
    assert framer.feed(data) == [each for each, _ in heads]
    assert framer.wanted == [200, 300]


@pytest.mark.parametrize("payload", [b"\0", b"\0\xef\1" + bytes(16), b"\0\xee\1" + bytes(40)])
def test_a_packet_without_its_semi_sync_head_is_damaged(payload: bytes) -> None:
    with pytest.raises(BinlogError, match="semi-sync header"):
        PacketFramer(0, lambda payload: payload[1:], semi_sync=True).feed(packet(0, payload))
