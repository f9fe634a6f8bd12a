"""Binary logs of a real server as DataFrames, in one process and in as many tasks as wanted."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

from mtsd.binlog.range_reader import RangeReader
from mtsd.binlog.ranges import ByteRange
from mtsd.cli.event_listing import event_lines
from mtsd.spark.failure import failure_line
from tests.binlog.range_cases import Contents, raw_events
from tests.binlog.recording import OPTIONS, play
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

Read = Callable[..., DataFrame]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("binlogs")
    with Server(OPTIONS) as server:
        for path in play(server):
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def read(spark: SparkSession, folder: Path) -> Read:
    def read(shape: str, path: Path = folder, **options: object) -> DataFrame:
        reader = spark.read.format("mtsd_binlog").option("shape", shape)
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return reader.load(str(path))

    return read


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.parametrize("tasks", [1, 6, pytest.param(48, marks=pytest.mark.long)])
def test_groups_are_those_of_the_files(read: Read, folder: Path, tasks: int) -> None:
    wanted = []
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        bounds = ByteRange(path.name, 4, len(data), len(data))
        for part in RangeReader(Contents(data), bounds, path.name).parts():
            assert part.group
            wanted.append(
                (
                    path.name,
                    part.begin,
                    part.end,
                    str(part.gtid),
                    part.group.kind.value,
                    sorted(part.group.databases),
                    part.group.size,
                )
            )
    found = read("groups", max_partition_bytes=size_of(folder) // tasks + 1)
    names = ("file", "begin", "pos", "gtid", "kind", "databases", "bytes")
    assert sorted(tuple(row[name] for name in names) for row in found.collect()) == wanted


def test_rows_and_tables_of_groups(read: Read) -> None:
    rows = read("groups", columns="kind,rows,tables").where("rows > 0").collect()
    assert {kind: rows for kind, rows, _ in rows if kind == "create_select"} == {"create_select": 1}
    assert ("rows", 2, ["d1.types"]) in [tuple(row) for row in rows]


def test_events_are_those_that_mtsd_binlog_lists(read: Read, folder: Path) -> None:
    wanted = []
    for path in folder.iterdir():
        raw = raw_events(path.read_bytes())
        pos = 0
        for line in event_lines(path.name, raw):
            pos = line.offset or pos
            wanted.append((path.name, pos, line.type, line.inner, line.header.server_id))
    found = read("events", columns="file,pos,type,inner,server_id", max_partition_bytes=9000)
    assert sorted(map(tuple, found.collect())) == sorted(wanted)


def test_filters_and_positions(read: Read, folder: Path) -> None:
    last = max(folder.iterdir())
    groups = read("groups").collect()
    places = sorted((row["file"], row["pos"], row["begin"], row["commit_time"]) for row in groups)
    middle = next(place for place in places if place[0] == last.name and place[1] > 5000)
    file, pos, begin, moment = middle
    later = {place[:2] for place in places if place[:2] >= (file, pos)}
    here = {place[:2] for place in places if place[0] == file}

    def found(frame: DataFrame) -> set[tuple[str, int]]:
        return {(row["file"], row["pos"]) for row in frame.collect()}

    assert found(read("groups", start=f"{file}:{begin}")) == later
    assert len(found(read("groups", end=f"{file}:{pos}"))) == len(places) - len(later) + 1
    filtered = read("groups").where(f"file = '{file}'")
    assert found(filtered) == here
    assert found(filtered.where(f"pos <= {pos}")) == here - later | {(file, pos)}
    assert found(read("groups").where(f"commit_time >= '{moment}'")) >= later


def test_what_is_wrong_is_said_by_name(spark: SparkSession, read: Read, folder: Path) -> None:
    for options, message in (
        ({"nonsense": 1}, "option 'nonsense' is unknown"),
        ({"columns": "file,a"}, "there is no a: there are file, begin, pos"),
        ({"path": folder / "none"}, "there are no binary logs at"),
    ):
        with pytest.raises(AnalysisException, match=message):
            read("groups", **options)
    reader = spark.read.format("mtsd_binlog").option("shape", "groups")
    with pytest.raises(AnalysisException, match="column 'pos' of shape 'groups' is bigint, not"):
        reader.schema("pos STRING").load(str(folder)).collect()
    assert reader.schema("pos BIGINT, kind STRING").load(str(folder)).count() > 50


def test_damage_is_one_line_with_file_and_position(
    read: Read, folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / min(folder.iterdir()).name
    data = bytearray(min(folder.iterdir()).read_bytes())
    data[3000] ^= 0xFF
    copy.write_bytes(data)
    with pytest.raises(PythonException) as caught:
        read("groups", tmp_path).collect()
    assert len(str(caught.value).splitlines()) < 8
    line = failure_line(caught.value)
    assert line is not None
    assert line.startswith(f"{copy}: checksum mismatch in an event of type ")
    assert f"(after {copy.name}:" in line
