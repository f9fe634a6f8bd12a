"""A stream goes on at another server, by GTIDs, with each transaction exactly once."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes

from mtsd.spark.logs.failure import UnreadableBinlogError
from mtsd.spark.source.data_source import BinlogDataSource
from mtsd.spark.source.stream_reader import BinlogStreamReader
from tests.binlog.recording import OPTIONS
from tests.servers.mysqld import Server
from tests.spark.direct_reads import read_directly

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

Offset = dict[str, str | int]
TABLE = "CREATE DATABASE fo; CREATE TABLE fo.t (id INT PRIMARY KEY)"


OTHERS = "aa5d12c6-71ca-11e1-9e33-c80aa9429562:1-7"


class Primary:
    """A server, and what it has executed after a place."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.gtids: dict[int, str] = {}

    def insert(self, *numbers: int) -> None:
        for number in numbers:
            before = self.executed()
            self.server.sql(f"INSERT INTO fo.t VALUES ({number})")
            ((found,),) = self.server.sql(f"SELECT GTID_SUBTRACT('{self.executed()}', '{before}')")
            self.gtids[number] = str(found)

    def executed(self) -> str:
        return "".join(str(self.server.sql("SELECT @@global.gtid_executed")[0][0]).split())


@pytest.fixture
def primary(server: Server) -> Iterator[Primary]:
    server.sql(TABLE)
    yield Primary(server)
    server.sql("DROP DATABASE fo")


def reader(server: Server, **options: str) -> BinlogStreamReader:
    live = {"host": "127.0.0.1", "port": str(server.port), "user": "root", "connect_timeout": "60"}
    source = BinlogDataSource({**live, "shape": "changes", "tables": "fo.t", **options})
    return source.streamReader(source.schema())


def ids(at: BinlogStreamReader, start: Offset, end: Offset, seqs: list[str]) -> list[int]:
    found = [
        row
        for task in at.partitions(start, end)
        for batch in at.read(task)
        for row in batch.to_pylist()
        if row["op"] == "insert"
    ]
    seqs += [row["seq"] for row in found]
    return [int(row["key"].removeprefix('{"id":').removesuffix("}")) for row in found]


def run(at: BinlogStreamReader, place: Offset, limit: ReadLimit, seqs: list[str]) -> list[int]:
    """Return what all batches have, up to the log's end."""
    found: list[int] = []
    while (end := at.latestOffset(place, limit)) != place:
        found += ids(at, place, end, seqs)
        place = end
    return found


def test_each_transaction_once(primary: Primary) -> None:
    everything = ReadAllAvailable()
    first = reader(primary.server, start="latest")
    seqs: list[str] = []
    begin = first.latestOffset(first.initialOffset(), everything)
    assert begin["gtids"] == primary.executed()
    primary.insert(2, 3)
    read = first.latestOffset(begin, everything)
    assert ids(first, begin, read, seqs) == [2, 3]
    primary.insert(4, 5)
    planned = first.latestOffset(read, everything)
    first.stop()
    with Server({**OPTIONS, "server_id": 77}) as other, closing(other.client()) as client:
        other.sql(f"{TABLE}; RESET BINARY LOGS AND GTIDS")
        other.sql(f"SET GLOBAL gtid_purged = '{begin['gtids']}'; FLUSH BINARY LOGS")

        def apply(*numbers: int) -> None:
            with client.cursor() as cursor:
                for number in numbers:
                    cursor.execute(f"SET gtid_next = '{primary.gtids[number]}'")
                    cursor.execute(f"INSERT INTO fo.t VALUES ({number})")
                cursor.execute("SET gtid_next = 'AUTOMATIC'")

        # A replica may commit in another order.
        apply(4, 3, 2)
        missing = primary.gtids[5]
        second = reader(other)
        with pytest.raises(UnreadableBinlogError, match=f"has not executed {missing}, which"):
            second.partitions(read, planned)
        second.stop()
        apply(5)
        other.sql("INSERT INTO fo.t VALUES (6); FLUSH BINARY LOGS; INSERT INTO fo.t VALUES (7)")
        # The batch that was planned at the former server, and then the next ones.
        second = reader(other)
        assert ids(second, read, planned, seqs) == [4, 5]
        assert run(second, planned, everything, seqs) == [6, 7]
        assert seqs == sorted(seqs)
        for limit in (everything, ReadMaxBytes(1)):
            assert run(second, read, limit, []) == [4, 5, 6, 7]
        reported = second.reportLatestOffset()
        assert reported is not None
        ((file, pos, *_),) = other.sql("SHOW BINARY LOG STATUS")
        assert (reported["file"], reported["pos"]) == (file, pos)
        assert (reported["bytes_behind"], reported["seconds_behind"]) == (0, 0)
        other.sql("DO SLEEP(2)")
        second.latestOffset(read, ReadMaxBytes(1))
        behind = second.reportLatestOffset()
        assert behind is not None
        assert 1 < int(behind["seconds_behind"]) < 200
        assert int(pos) < int(behind["bytes_behind"]) < 20_000
        second.stop()
        third = reader(other, start=f"gtid:{read['gtids']}")
        assert run(third, third.initialOffset(), everything, []) == [4, 5, 6, 7]
        third.stop()
        other.sql(f"PURGE BINARY LOGS TO '{reported['file']}'")
        late = reader(other)
        with pytest.raises(UnreadableBinlogError, match="what comes between was purged"):
            late.latestOffset(read, everything)
        late.stop()


def test_a_read_begins_after_gtids_or_at_a_time(primary: Primary) -> None:
    primary.insert(1)
    executed = primary.executed()
    primary.server.sql("FLUSH BINARY LOGS; DO SLEEP(1.1)")
    time = datetime.now(UTC)
    primary.insert(2)
    primary.server.sql("FLUSH BINARY LOGS")
    for where in (
        {"path": str(primary.server.datadir)},
        {"host": "127.0.0.1", "port": str(primary.server.port), "user": "root"},
    ):
        options = {**where, "shape": "changes", "tables": "fo.t"}
        for start in (f"gtid:{executed}", time.isoformat()):
            assert [row["key"] for row in read_directly({**options, "start": start})] == [
                '{"id":2}'
            ]
        # All that was executed, and more, which it never was here.
        assert read_directly({**options, "start": f"gtid:{primary.executed()}"}) == []
        for others in (OTHERS, f"{primary.executed()},{OTHERS}"):
            with pytest.raises(UnreadableBinlogError, match=f"does not have {OTHERS}, after which"):
                read_directly({**options, "start": f"gtid:{others}"})
