import sys
import tracemalloc

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.payload import NONE, ZSTD, parse_payload_header, payload_events
from mtsd.model.errors import BinlogError
from tests.binlog.building import event
from tests.binlog.payloads import INNER, PLAIN, payload
from tests.binlog.recording import Recording

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress


def test_a_real_one(recording: Recording) -> None:
    (raw,) = recording.of(EventType.TRANSACTION_PAYLOAD_EVENT)
    inner = list(payload_events(raw))
    assert [found[4] for found in inner] == [
        EventType.QUERY_EVENT,
        EventType.ROWS_QUERY_LOG_EVENT,
        EventType.TABLE_MAP_EVENT,
        EventType.WRITE_ROWS_EVENT,
        EventType.XID_EVENT,
    ]
    assert b"compressible " * 1000 in inner[3]
    header = parse_payload_header(raw)
    assert header.uncompressed_size == sum(map(len, inner)) > header.payload_size
    assert header.payload_at + header.payload_size == len(raw)


@pytest.mark.parametrize("chunk", [1, 19, 20, 1000, 1 << 20])
def test_any_chunk_gives_the_same_events(chunk: int) -> None:
    assert list(payload_events(payload(compress(PLAIN)), chunk=max(chunk, 300))) == INNER
    small = b"".join(INNER[:2])
    raw = payload(compress(small), uncompressed=len(small))
    assert list(payload_events(raw, chunk=chunk)) == INNER[:2]


def test_several_frames_are_one_payload() -> None:
    body = compress(PLAIN[:100]) + compress(PLAIN[100:])
    assert list(payload_events(payload(body))) == INNER


@pytest.mark.parametrize("uncompressed", [len(PLAIN), None])
def test_not_compressed(uncompressed: int | None) -> None:
    assert list(payload_events(payload(PLAIN, kind=NONE, uncompressed=uncompressed))) == INNER


def test_memory_is_bounded_by_the_chunk_not_by_the_payload() -> None:
    count, size = 600, 100_000
    big = event(EventType.QUERY_EVENT, bytes(size - 19)) * count
    raw = payload(compress(big), uncompressed=len(big))
    del big
    tracemalloc.start()
    try:
        assert sum(1 for _ in payload_events(raw, chunk=1 << 18)) == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Of 60 MB.
    assert peak < 3_000_000


@pytest.mark.parametrize("kind", [ZSTD, NONE])
def test_a_large_event_is_in_memory_once(kind: int) -> None:
    size = 32 << 20
    plain = INNER[2] + event(EventType.QUERY_EVENT, bytes(size)) + INNER[2]
    body = compress(plain) if kind == ZSTD else plain
    raw = payload(body, kind=kind, uncompressed=len(plain))
    del plain, body
    tracemalloc.start()
    try:
        assert [len(found) for found in payload_events(raw)] == [5019, size + 19, 5019]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * size


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    raw = payload(compress(bytes(50_000_000)), uncompressed=100)
    with pytest.raises(BinlogError, match="more than the announced 100 bytes"):
        list(payload_events(raw))


EMPTY_FRAME = b"\x28\xb5\x2f\xfd\0\0\1\0\0"
HUGE = b"\0" * 9 + (1 << 31).to_bytes(4, "little") + b"\0" * 6


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (payload(b"", kind=1), "unknown compression type 1"),
        (payload(PLAIN, kind=NONE, uncompressed=5), "more than the announced 5 bytes"),
        (payload(compress(INNER[0]), uncompressed=18), "more than the announced 18 bytes"),
        (payload(PLAIN, kind=NONE, uncompressed=1 << 40), "cannot hold the announced"),
        (payload(compress(PLAIN), uncompressed=1 << 40), "cannot hold the announced"),
        (
            payload(EMPTY_FRAME * 1025, uncompressed=19),
            "more than 1024 zstd frames",
        ),
        (payload(compress(PLAIN), uncompressed=None), "uncompressed size is missing"),
        (payload(compress(PLAIN), size=5), "a payload of 5 bytes, but"),
        (payload(compress(PLAIN)) + b"x", "a payload of"),
        (payload(compress(PLAIN) + b"garbage"), "TRANSACTION_PAYLOAD event: "),
        (payload(b"garbage"), "TRANSACTION_PAYLOAD event: "),
        (payload(b""), "0 bytes cannot hold the announced"),
        (payload(b"", uncompressed=0), "its compressed payload is cut off"),
        (payload(compress(PLAIN)[:-3]), "its compressed payload is cut off"),
        (payload(compress(PLAIN), uncompressed=len(PLAIN) + 1), "instead of"),
        (payload(compress(PLAIN[:-1]), uncompressed=len(PLAIN) - 1), "but only 19 are left"),
        (payload(compress(PLAIN + b"x"), uncompressed=len(PLAIN) + 1), "last inner event is cut"),
        (payload(HUGE, kind=NONE, uncompressed=19), "an inner event of 2147483648 bytes"),
        (payload(bytes(19), kind=NONE, uncompressed=19), "an inner event of 0 bytes"),
        (payload(b"", more=b"\x04\x01\x00"), "unknown field 4"),
        (event(EventType.TRANSACTION_PAYLOAD_EVENT, b""), "field type of 1 bytes"),
        (event(EventType.TRANSACTION_PAYLOAD_EVENT, b"\x02\x02\x00\x00"), "does not have 2 bytes"),
        (event(EventType.TRANSACTION_PAYLOAD_EVENT, b"\0"), "payload size is missing"),
    ],
)
def test_what_is_refused(damaged: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        list(payload_events(damaged))
