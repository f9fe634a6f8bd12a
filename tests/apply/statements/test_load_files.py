"""Files of LOAD DATA take little memory, however many there are."""

import tracemalloc

from mtsd.apply.statements.load_files import LoadFiles
from mtsd.binlog.bytes.event_type import EventType
from tests.binlog.building import event

BEGIN, APPEND, DELETE = (
    EventType.BEGIN_LOAD_QUERY_EVENT,
    EventType.APPEND_BLOCK_EVENT,
    EventType.DELETE_FILE_EVENT,
)
BLOCK = bytes(range(256)) * 2000


def part(kind: EventType, file_id: int, data: bytes = b"") -> bytes:
    return event(kind, file_id.to_bytes(4, "little") + data)


async def contents(files: LoadFiles, file_id: int) -> bytes:
    return b"".join([piece async for piece in files.pieces(file_id)])


async def test_all_of_them_together_are_bounded() -> None:
    files = LoadFiles()
    events = [(part(BEGIN, n, b"%d" % n), part(APPEND, n, BLOCK)) for n in range(20)]
    tracemalloc.start()
    try:
        for begun, appended in events:
            await files.take(begun)
            await files.take(appended)
        held, _ = tracemalloc.get_traced_memory()
        assert held < 3 << 20
        for number in range(20):
            assert await contents(files, number) == b"%d" % number + BLOCK
        # One that is let go makes room in memory.
        files.forget(0)
        files.forget(1)
        await files.take(part(DELETE, 2))
        for number in range(100):
            await files.take(part(BEGIN, 100 + number, BLOCK))
            assert await contents(files, 100 + number) == BLOCK
            files.forget(100 + number)
        held, _ = tracemalloc.get_traced_memory()
        assert held < 3 << 20
        assert files.has_backslashes(3)
        files.clear()
        held, _ = tracemalloc.get_traced_memory()
        assert held < 1 << 20
    finally:
        tracemalloc.stop()
