"""Where transactions begin in the binary log of a real source."""

import pytest

from mtsd.binlog.events.event_reader import EventReader
from mtsd.config.start import FilePosition, Latest
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.source.binlog_files import BinlogFileReader, list_files
from mtsd.source.place import starts_inside_group
from mtsd.source.source_state import BinlogFile
from mtsd.wire.endpoint import Endpoint
from tests.fix_families import pair_of

pytestmark = pytest.mark.servers
GTIDS = frozenset({33, 34, 42, 162})
OF_FILES = frozenset({4, 3, 15, 35, 161, 163})
"""Rotate, Stop, Format_description, Previous_gtids, GTID_LIST, Binlog_checkpoint."""


@pytest.mark.parametrize("version", ["9.7", "11.8"])
async def test_between_transactions_and_nowhere_else(version: str) -> None:
    with pair_of(version, version) as pair:
        pair.source.sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY);"
            "SET SESSION binlog_format = ROW;"
            "BEGIN; INSERT INTO a.t VALUES (1); INSERT INTO a.t VALUES (2); COMMIT;"
            "FLUSH BINARY LOGS; INSERT INTO a.t VALUES (3); SELECT 1"
        )
        endpoint = Endpoint("source", "", 0, str(pair.source.socket), "root", "")
        files = await list_files(endpoint)
        sizes = {file.name: file.size for file in files}

        async def inside(file: BinlogFile, offset: int) -> bool:
            return await starts_inside_group(endpoint, FilePosition(file.name, offset), sizes)

        seen = set()
        for file in files[-2:]:
            for offset, code in await events(endpoint, file):
                if offset >= file.size:
                    # A MariaDB writes its Binlog_checkpoint some time after a rotation.
                    break
                seen.add(code)
                expected = code not in GTIDS | OF_FILES
                assert await inside(file, offset) == expected, (file, offset, code)
                assert await inside(file, offset + 1)
            assert not await inside(file, file.size)
            assert not await inside(file, file.size + 1)
        assert seen & GTIDS
        assert {4, 15, 16, 19} <= seen
        assert not await starts_inside_group(endpoint, Latest(), sizes)


async def events(endpoint: Endpoint, file: BinlogFile) -> list[tuple[int, int]]:
    """Return where each event of a file begins, and its type."""
    dump = await BinlogFileReader.open(endpoint, file)
    reader = EventReader(Position(file.name, FIRST_EVENT))
    found = []
    while raws := await dump.read():
        for raw in raws:
            before = reader.position
            reader.read(raw)
            if reader.position != before:
                found.append((before.offset, raw[4]))
    dump.close()
    return found
