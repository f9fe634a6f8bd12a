"""A stream of a folder, without Spark, while a server does to its files whatever it may do."""

import json
import random
import shutil
from collections.abc import Callable, Mapping
from itertools import pairwise, permutations
from pathlib import Path

import pytest

from mtsd.binlog.files.file_end import file_end
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import Tail, whole_file
from mtsd.model.errors import MtsdError
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.logs.failure import UnreadableBinlogError
from mtsd.spark.logs.folder_logs import FolderLogs
from mtsd.spark.logs.logs import FilesError
from mtsd.spark.options.options import Options
from mtsd.spark.shapes.change_shape import ChangeShape
from mtsd.spark.shapes.shape import ShapeRequest
from mtsd.spark.source.lag import bytes_between
from mtsd.spark.source.stream_plan import first_offset, next_end, parts_between
from mtsd.spark.source.stream_reader import BinlogStreamReader
from tests.binlog.range_cases import Contents, declared, events
from tests.binlog.recording import OPTIONS, play
from tests.servers.mysqld import Server
from tests.spark.direct_reads import DirectStream, Row, read_directly
from tests.spark.streams import Writer

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the files of a server that has crashed once."""
    folder = tmp_path_factory.mktemp("recorded")
    with Server({**OPTIONS, "max_binlog_size": 32768}) as server:
        play(server)
        writer = Writer(server)
        writer.write(5)
        server.kill()
        server.start()
        writer.write(12)
        server.sql("FLUSH BINARY LOGS")
        writer.write(2)
        for path in server.datadir.glob("binlog.0*"):
            shutil.copy(path, folder)
    return folder


Told = tuple[str, tuple[object, ...]]


def place(declared: Told, index: int) -> Position:
    """Return where a group begins (0) or ends (1)."""
    return Position(declared[0], int(str(declared[1][index])))


def groups(logs: FolderLogs, start: Position, end: Position, most: int = 7000) -> list[Told]:
    found: list[Told] = []
    for ranges in logs.planned(parts_between(logs, start, end), most):
        for bounds in ranges:
            name = Path(bounds.file).name
            with logs.opened(bounds) as contents:
                reader = RangeReader(contents, bounds, name)
                found += [(name, one) for one in declared(list(reader.parts()))]
            if bounds.tail is Tail.AS_FLAGGED and bounds.end == bounds.size:
                logs.check_end(bounds)
    return found


def everything(folder: Path) -> list[Told]:
    found: list[Told] = []
    for path in sorted(folder.iterdir()):
        bounds = whole_file(str(path), path.stat().st_size)
        with FolderLogs(str(path)).opened(bounds) as contents:
            reader = RangeReader(contents, bounds, path.name)
            found += [(path.name, one) for one in declared(list(reader.parts()))]
    return found


class Reader:
    """A stream that remembers its offset."""

    def __init__(self, folder: Path) -> None:
        self.logs = FolderLogs(str(folder))
        self.place = first_offset(self.logs, None, latest=False)
        self.groups: list[Told] = []

    def read(self, most: int | None = None, stop: Position | None = None) -> None:
        """Read what is available, in batches of `most` bytes."""
        while (end := next_end(self.logs, self.place, most, stop)) != self.place:
            assert end > self.place
            self.groups += groups(self.logs, self.place, end)
            self.place = end


@pytest.mark.parametrize("most", [1, 5000, 50_000, None])
def test_every_group_once(recorded: Path, most: int | None) -> None:
    reader = Reader(recorded)
    reader.read(most)
    assert reader.groups == everything(recorded)


@pytest.mark.parametrize("seed", range(6))
def test_files_that_grow_by_any_number_of_bytes(recorded: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    reader: Reader | None = None
    for path in sorted(recorded.iterdir()):
        data = path.read_bytes()
        size = 0
        while size < len(data):
            more = rng.choice((1, 3, 18, 90, 700, 9000, 60_000))
            size = min(len(data), size + more)
            (tmp_path / path.name).write_bytes(data[:size])
            reader = reader or Reader(tmp_path)
            if size > len(data) - 40 or rng.random() < 0.4:
                reader.read(rng.choice((None, 300, 20_000)))
        if rng.random() < 0.3:
            size = len(data)
    assert reader is not None
    reader.read()
    assert reader.groups == everything(recorded)


def test_a_group_cut_off_by_a_crash_is_passed(recorded: Path, tmp_path: Path) -> None:
    """Another file follows the one whose server died; the partial group is ignored."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    paths = sorted(tmp_path.iterdir())
    crashed, after = next(
        pair for pair in pairwise(paths) if file_end(Contents(pair[0].read_bytes()), "f") is None
    )
    data = bytearray(crashed.read_bytes())
    data[FIRST_EVENT + 17] |= 1
    for size in (len(data) - 60, len(data) - 200, len(data) // 2):
        crashed.write_bytes(data[:size])
        wanted = everything(tmp_path)
        for most in (None, 2000, 20):
            reader = Reader(tmp_path)
            reader.read(most)
            assert reader.groups == wanted
        # The file was read before the next one existed.
        held = after.rename(tmp_path.parent / "held")
        later = sorted(
            path.rename(tmp_path.parent / path.name)
            for path in tmp_path.iterdir()
            if path.name > after.name
        )
        reader = Reader(tmp_path)
        reader.read()
        held.rename(after)
        for path in later:
            path.rename(tmp_path / path.name)
        reader.read()
        assert reader.groups == wanted


def test_a_copy_that_lacks_the_end_of_a_file_is_an_error(recorded: Path, tmp_path: Path) -> None:
    """Wherever it is truncated, even if it is marked as being written."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    first = min(tmp_path.iterdir())
    whole = first.read_bytes()
    ends = [end for end, _, _ in events(whole)]
    for cut in (ends[-2], ends[-2] - 7, ends[len(ends) // 2], ends[len(ends) // 2] + 20):
        for flags in (0, 1):
            data = bytearray(whole[:cut])
            data[FIRST_EVENT + 17] |= flags
            first.write_bytes(data)
            with pytest.raises(MtsdError, match=r"is not complete|ends inside|without its end"):
                Reader(tmp_path).read()
    first.write_bytes(whole)
    reader = Reader(tmp_path)
    reader.read()
    assert reader.groups == everything(recorded)


def rows(path: Path | str, **options: str) -> list[Row]:
    return read_directly({"path": str(path), "shape": "groups", **options})


def test_files_that_are_not_in_their_places(recorded: Path, tmp_path: Path) -> None:
    """Swapped, copied over each other, or missing; whichever they are."""
    names = sorted(path.name for path in recorded.iterdir())
    whole = {name: name for name in names}

    def damaged(files: Mapping[str, str], message: str, pattern: str = "") -> None:
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        for name, source in files.items():
            shutil.copy(recorded / source, tmp_path / name)
        with pytest.raises(UnreadableBinlogError, match=message):
            rows(tmp_path / pattern)

    misplaced = "is not the file that its name says|is not complete"
    for one, other in random.Random(8).sample(list(permutations(names, 2)), 6):
        damaged(whole | {one: other}, misplaced)
        damaged(whole | {one: other, other: one}, misplaced)
    for name in names[2:3]:
        others = {one: one for one in names if one != name}
        damaged(others, "the files before .*are missing")
        damaged(others, "the files before .*are missing", "binlog.*")
        packed = f"{name}.gz"
        damaged(others | {packed: name}, f"{packed} is packed, and without it")
        damaged(whole | {f"{name}.bak": name}, "bak is not named like a binary log", "binlog.*")
    several = [str(recorded / name) for name in names]
    assert len(rows("", paths=json.dumps(several))) == len(rows(recorded)) > 50
    with pytest.raises(UnreadableBinlogError, match=r"the files before binlog.000003, from number"):
        rows("", paths=json.dumps([several[0], several[2]]))


def test_what_is_told_of_files(
    recorded: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    first, *_, last = sorted(tmp_path.iterdir())
    shutil.copy(first, tmp_path / f"{first.name}.bak")
    data = bytearray(last.read_bytes())
    data[FIRST_EVENT + 17] |= 1
    last.write_bytes(data)
    rows(tmp_path)
    assert f"{first.name}.bak is not read: it is no binary log by its name" in caplog.text
    assert "may be incomplete" not in caplog.text
    # A copy whose last groups are missing.
    data[FIRST_EVENT + 17] &= ~1
    last.write_bytes(data[: int(str(rows(tmp_path)[-1]["pos"]))])
    rows(tmp_path)
    assert f"{last} may be incomplete: it is not marked as being written" in caplog.text


def test_stops_are_not_passed(recorded: Path) -> None:
    files = FolderLogs(str(recorded)).files()
    for number, part in ((1, 1.0), (1, 0.5), (0, 0.3)):
        name, size = Path(files[number][0]).name, files[number][1]
        stop = Position(name, int(size * part))
        reader = Reader(recorded)
        reader.read(9000, stop)
        assert reader.place <= stop
        wanted = [one for one in everything(recorded) if place(one, 1) <= stop]
        assert reader.groups == wanted


@pytest.mark.parametrize("number", [1, -1])
def test_where_a_stream_may_begin(recorded: Path, number: int) -> None:
    logs = FolderLogs(str(recorded))
    wanted = everything(recorded)
    file, size = logs.files()[number]
    name = Path(file).name
    own = {place(one, end).offset for one in wanted if one[0] == name for end in (0, 1)}
    # Also at the last group, inside of it, at its end, and in what follows it.
    for offset in sorted({*range(FIRST_EVENT, size, 97), *own, max(own) - 1, size - 1, size}):
        start = Position(name, offset)
        reader = Reader(recorded)
        reader.place = first_offset(logs, start, latest=False)
        assert reader.place >= start
        reader.read()
        assert reader.groups == [one for one in wanted if place(one, 0) >= start]


def test_a_beginning_in_a_group_that_is_being_written(recorded: Path, tmp_path: Path) -> None:
    (_, (begin, end, *_)) = everything(recorded)[-1]
    *_, last = sorted(recorded.iterdir())
    (tmp_path / last.name).write_bytes(last.read_bytes()[: int(str(end)) - 9])
    logs = FolderLogs(str(tmp_path))
    start = Position(last.name, int(str(begin)))
    assert first_offset(logs, start, latest=False) == start
    with pytest.raises(FilesError, match=f"'start' is {last.name}:.* is not there as a whole yet"):
        first_offset(logs, Position(last.name, int(str(begin)) + 1), latest=False)


def test_the_end_and_places_that_are_not_there(recorded: Path) -> None:
    logs = FolderLogs(str(recorded))
    end = first_offset(logs, None, latest=True)
    assert next_end(logs, end, None, None) == end
    with pytest.raises(FilesError, match="is not there any more"):
        first_offset(logs, Position("binlog.000099", 4), latest=False)
    file, size = logs.files()[0]
    for options, message in (
        ({"start": f"{Path(file).name}:{size + 1}"}, f"has {size} bytes"),
        (
            {"start": "latest", "end": f"{Path(file).name}:{size}"},
            "'start' and 'end' leave nothing",
        ),
    ):
        with pytest.raises(UnreadableBinlogError, match=message):
            DirectStream({"path": str(recorded), "shape": "groups", **options}).run()


def test_what_has_gone_or_shrunk_is_named(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    first, second, *_ = sorted(tmp_path.iterdir())
    reader = Reader(tmp_path)
    begin = reader.place
    end = next_end(reader.logs, Position(second.name, FIRST_EVENT), 3000, None)
    assert end.file == second.name
    second.write_bytes(second.read_bytes()[: end.offset - 1])
    for ask in (
        lambda: next_end(reader.logs, end, None, None),
        lambda: next_end(reader.logs, end, None, first_offset(reader.logs, None, latest=False)),
        lambda: parts_between(reader.logs, begin, end),
    ):
        with pytest.raises(FilesError, match=f"{second.name} has .* been read up to byte"):
            ask()
    first.unlink()
    for ask in (
        lambda: next_end(reader.logs, begin, None, None),
        lambda: parts_between(reader.logs, begin, end),
    ):
        with pytest.raises(FilesError, match=f"{first.name} is not there any more"):
            ask()


Damage = Callable[[bytearray, random.Random], None]


def flip(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def drop(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randrange(1, 200)]


def double(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    data[at:at] = data[at : at + rng.randrange(1, 200)]


@pytest.mark.parametrize("damage", [flip, drop, double])
def test_damage_is_an_error_or_the_same_groups(
    recorded: Path, tmp_path: Path, damage: Damage
) -> None:
    """In the last file, groups after the damage may be missing: they may not be written yet."""
    rng = random.Random(7)
    wanted = everything(recorded)
    errors = 0
    for _ in range(40):
        shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
        path = rng.choice(sorted(tmp_path.iterdir()))
        data = bytearray(path.read_bytes())
        damage(data, rng)
        path.write_bytes(data)
        reader = Reader(tmp_path)
        try:
            reader.read(rng.choice((None, 3000)))
        except MtsdError:
            errors += 1
            wanted_now = wanted[: len(reader.groups)]
        else:
            is_last = path.name == max(one.name for one in tmp_path.iterdir())
            wanted_now = wanted[: len(reader.groups)] if is_last else wanted
        assert reader.groups == wanted_now
    assert errors > 15


def test_offsets_of_another_server_are_an_error_of_one_line(recorded: Path) -> None:
    """Spark may plan an uncommitted batch again before anything else."""
    shape = ChangeShape()
    options = Options(str(recorded), "changes")
    request = ShapeRequest(options, shape.schema(options, []))
    reader = BinlogStreamReader(request, shape, FolderLogs(str(recorded)))
    offset = {"file": "binlog.000001", "pos": 4, "source": "another"}
    with pytest.raises(UnreadableBinlogError, match="is files now, and positions are those of ano"):
        reader.partitions(offset, offset)


def test_bytes_behind() -> None:
    files = [("f/b.999998", 100), ("f/b.999999", 200), ("f/b.1000000", 50)]
    begin, end = Position("b.999998", 40), Position("b.1000000", 50)
    assert bytes_between(files, begin, end) == 60 + 196 + 46
    assert bytes_between(files, end, begin) == 0
    assert bytes_between(files, begin, Position("b.999998", 90)) == 50
    assert bytes_between(files[1:], begin, end) == 0
