"""A live source's files are read as they are, by dumps, with a server id of their own."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mtsd.binlog.range_reader import RangeReader
from mtsd.binlog.ranges import ByteRange, Tail, whole_file
from mtsd.model.errors import BinlogError
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.dump_contents import DumpContents
from mtsd.spark.folder_logs import FolderLogs
from mtsd.spark.live_connection import SourceError
from mtsd.spark.live_logs import LiveLogs
from mtsd.spark.live_options import LiveOptions
from mtsd.spark.logs import FilesError, Logs
from mtsd.spark.stream_plan import next_end, parts_between
from tests.binlog.range_cases import told
from tests.binlog.recording import OPTIONS, play
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def source() -> Iterator[Server]:
    with Server({**OPTIONS, "max_binlog_size": 65536}) as server:
        play(server)
        yield server


def options(server: Server, **others: object) -> LiveOptions:
    given = {"port": server.port, "user": "root", "retry_seconds": 5.0, **others}
    return LiveOptions(**given)  # type: ignore[arg-type]


@contextmanager
def logs(server: Server, **others: object) -> Iterator[LiveLogs]:
    found = LiveLogs(options(server, **others))
    try:
        yield found
    finally:
        found.close()


def groups(logs: Logs, parts: list[ByteRange], hold_bytes: int = 8 << 20) -> list[object]:
    found: list[object] = []
    for bounds in parts:
        name = Path(bounds.file).name
        with logs.opened(bounds) as contents:
            reader = RangeReader(contents, bounds, name, hold_bytes=hold_bytes)
            found += [(name, one) for one in told(list(reader.parts()))]
    return found


@pytest.mark.parametrize("server_ids", [(), (4001, 4002)])
def test_the_same_groups_as_the_files(source: Server, server_ids: tuple[int, ...]) -> None:
    here = FolderLogs(str(source.datadir))
    with logs(source, server_ids=server_ids) as there:
        files = there.files()
        assert [(Path(file).name, size) for file, size in here.files()] == files
        wanted = groups(here, [whole_file(*file) for file in here.files()])
        assert groups(there, [whole_file(*file) for file in files]) == wanted
        assert len(wanted) > 50


@pytest.mark.parametrize("most", [3_000, 40_000, None])
def test_ends_lead_from_one_to_the_next(source: Server, most: int | None) -> None:
    here = FolderLogs(str(source.datadir))
    with logs(source) as there:
        wanted = groups(there, [whole_file(*file) for file in there.files()])
        found: list[object] = []
        place = Position(there.files()[0][0], FIRST_EVENT)
        while (end := next_end(there, place, most, None)) != place:
            assert end == next_end(here, place, most, None)
            found += groups(there, parts_between(there, place, end))
            place = end
        assert found == wanted


def test_large_groups_and_jumps_back(source: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtsd.spark.dump_contents._KEPT", 200)
    monkeypatch.setattr("mtsd.spark.dump_contents._STEP", 500)
    monkeypatch.setattr("mtsd.binlog.range_reader._PIECE", 300)
    here = FolderLogs(str(source.datadir))
    with logs(source) as there:
        (name, size), (path, _) = there.files()[0], here.files()[0]
        wanted = groups(here, [whole_file(path, size)], hold_bytes=2000)
        assert groups(there, [whole_file(name, size)], hold_bytes=2000) == wanted
        data = Path(path).read_bytes()
        with there.opened(ByteRange(name, FIRST_EVENT, size, size)) as contents:
            for at in (0, size - 50, 2, 5000, 4, size // 2, 100):
                assert contents.read(at, 60)[125:] == data[at : min(at + 60, size)][125:]
                if at > 200:
                    assert contents.read(at, 60) == data[at : min(at + 60, size)]


def test_the_connection_is_lost_in_the_middle(source: Server) -> None:
    with logs(source) as there:
        name, size = there.files()[0]
        bounds = whole_file(name, size)
        wanted = groups(there, [bounds])
        with there.opened(bounds) as contents:
            contents.read(0, 1000)
            assert isinstance(contents, DumpContents)
            contents._connection = contents._connection and (
                contents._connection.close() or contents._connection
            )
            reader = RangeReader(contents, bounds, name)
            assert [(name, one) for one in told(list(reader.parts()))] == wanted


def test_two_readers_never_share_an_id(source: Server) -> None:
    """As many readers as ids at a time, and the others wait for them."""
    with logs(source) as there:
        name, size = there.files()[0]
    seen: list[int] = []
    most = [0]
    failures: list[BaseException] = []

    def read() -> None:
        try:
            live = options(source, server_ids=(4101, 4102))
            contents = DumpContents(live, ByteRange(name, FIRST_EVENT, 10**9, 10**9))
            with closing(contents):
                contents.read(0, 500)
                time.sleep(0.3)
            seen.append(1)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(5)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        rows = source.sql("SHOW REPLICAS")
        ids = [row[0] for row in rows]
        assert len(set(ids)) == len(ids) <= 2
        most[0] = max(most[0], len(ids))
        time.sleep(0.02)
    assert failures == []
    assert len(seen) == 5
    assert most[0] == 2


def test_what_is_wrong_is_one_line(source: Server, tmp_path: Path) -> None:
    source.sql("CREATE USER who IDENTIFIED BY 'secret'")
    with logs(source, user="who", password="wrong") as there:
        with pytest.raises(SourceError, match=r"refuses user 'who'.*Check option user") as caught:
            there.files()
        assert "wrong" not in str(caught.value)
    with logs(source, user="who", password="secret", retry_seconds=0) as there:
        with pytest.raises(SourceError, match=r"REPLICATION CLIENT.*option user"):
            there.files()
    with logs(source, port=1, retry_seconds=0.3) as there:
        with pytest.raises(
            SourceError, match=r"nothing is listening at 127.0.0.1:1: .*option host"
        ):
            there.files()
    with logs(source, password_file=str(tmp_path / "none")) as there:
        with pytest.raises(SourceError, match="password_file = .* cannot be read: No such file"):
            there.files()
    with logs(source) as there:
        there.files()
        with pytest.raises(FilesError, match=r"has no binlog.000000 any more.*is the oldest"):
            next_end(there, Position("binlog.000000", 4), None, None)
        name, size = there.files()[-1]
        with pytest.raises(FilesError, match=r"has been read up to byte"):
            next_end(there, Position(name, size + 1), None, None)
        for bounds in (
            ByteRange("binlog.000000", FIRST_EVENT, 900, 900),
            ByteRange(name, 130, size, size, 130),
        ):
            with pytest.raises(SourceError, match=r"cannot send binlog.00000\d from byte"):
                groups(there, [bounds])


def test_an_end_that_is_none_is_an_error(source: Server) -> None:
    with logs(source) as there:
        name, size = there.files()[0]
        for end in (size - 60, size + 5):
            with pytest.raises((BinlogError, SourceError)):
                groups(there, [ByteRange(name, FIRST_EVENT, end, end, tail=Tail.WHOLE)])
