"""Which files are read, determined by their names and sizes alone."""

import sys
from pathlib import Path

import fsspec
import pytest

from mtsd.binlog.files.ranges import ByteRange
from mtsd.spark.logs.binlog_files import listed, opened
from mtsd.spark.logs.logs import FilesError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in (8, 9, 10, 11):
        (tmp_path / f"binlog.{number:06}").write_bytes(b"x" * number)
    for name in ("binlog.index", "ibdata1", "binlog.000010.gz", "undo_001"):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def test_a_folder_a_pattern_and_a_file(folder: Path) -> None:
    wanted = [(str(folder / f"binlog.{number:06}"), number) for number in (8, 9, 10, 11)]
    assert listed(str(folder)) == wanted
    assert listed(f"file://{folder}") == listed(f"file:{folder}") == wanted
    assert listed(f"{folder}/binlog.00001[01]") == wanted[2:]
    assert listed(wanted[1][0]) == wanted[1:2]


def test_what_mariadb_keeps_beside_them(folder: Path) -> None:
    for name in ("aria_log.00000001", "binlog.000010.idx", "binlog.000011.idx"):
        (folder / name).write_bytes(b"")
    wanted = [(str(folder / f"binlog.{number:06}"), number) for number in (8, 9, 10, 11)]
    assert listed(str(folder)) == wanted
    (folder / "binlog.000010.gz").unlink()
    assert listed(f"{folder}/binlog.[0-9]*") == wanted


def test_files_order_by_their_numbers(tmp_path: Path) -> None:
    for name in ("log.999999", "log.1000000"):
        (tmp_path / name).write_bytes(b"")
    assert [Path(name).name for name, _ in listed(str(tmp_path))] == ["log.999999", "log.1000000"]


def test_what_is_not_clear(folder: Path, tmp_path: Path) -> None:
    (folder / "binlog.000009").unlink()
    with pytest.raises(FilesError, match=r"the files before binlog.000010, from number 9, are"):
        listed(str(folder))
    (folder / "relay-bin.000001").write_bytes(b"")
    with pytest.raises(FilesError, match=r"several logs: say which, by a pattern: binlog\."):
        listed(str(folder))
    assert len(listed(f"{folder}/relay-bin.[0-9]*")) == 1
    for path in (tmp_path / "nothing", tmp_path / "no*"):
        with pytest.raises(FilesError, match="there are no binary logs at"):
            listed(str(path))


def test_files_that_vanish_while_they_are_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server purges files, and has others for a moment at each rotation."""
    wanted = listed(str(folder))[1:]
    really = Path.iterdir

    def iterdir(place: Path) -> list[Path]:
        found = [*really(place), place / "binlog.~rec~"]
        (folder / "binlog.000008").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert listed(str(folder)) == wanted


def test_what_cannot_be_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "binlog.000012").symlink_to(folder / "none")
    with pytest.raises(FilesError, match=r"binlog.000012 cannot be read: No such file"):
        listed(str(folder))

    def iterdir(place: Path) -> list[Path]:
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(FilesError, match=f"{folder} cannot be read: Permission denied"):
        listed(str(folder))


def test_no_more_is_read_than_was_planned(folder: Path) -> None:
    file = str(folder / "binlog.000011")
    with opened(ByteRange(file, 4, 9, 9)) as contents:
        assert contents.has_more
        assert contents.read(5, 100) == b"xxxx"
        assert contents.read(9, 1) == contents.read(50, 1) == b""
    with opened(ByteRange(file, 4, 11, 11)) as contents:
        assert not contents.has_more
    with pytest.raises(FilesError, match="cannot be read: No such file"), opened(
        ByteRange(file + "0", 4, 9, 9)
    ):  # fmt: skip
        pass


def test_files_that_fsspec_opens() -> None:
    system = fsspec.filesystem("memory")
    try:
        for number in (1, 2):
            system.pipe(f"/logs/binlog.{number:06}", b"x" * number)
        system.pipe("/logs/binlog.index", b"")
        wanted = [(f"memory:///logs/binlog.{number:06}", number) for number in (1, 2)]
        assert listed("memory://logs") == wanted
        assert listed("memory://logs/binlog.*2") == wanted[1:]
        assert listed(wanted[0][0]) == wanted[:1]
        with opened(ByteRange(wanted[1][0], 0, 1, 1)) as contents:
            assert contents.has_more
            assert contents.read(0, 9) == b"x"
        with pytest.raises(FilesError, match="there are no binary logs at"):
            listed("memory://logs/none")
    finally:
        system.rm("/logs", recursive=True)


def test_a_folder_is_listed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems with costly requests cache their listings."""
    system = fsspec.filesystem("memory")
    remembered: dict[str, list[object]] = {}
    really = system.ls

    def ls(path: str, detail: bool = True) -> list[object]:
        return remembered.setdefault(f"{path} {detail}", really(path, detail=detail))

    def invalidate_cache(_path: str | None = None) -> None:
        remembered.clear()

    monkeypatch.setattr(system, "ls", ls)
    monkeypatch.setattr(system, "invalidate_cache", invalidate_cache)
    try:
        for number in (1, 2):
            system.pipe(f"/new/binlog.{number:06}", b"x" * number)
            assert len(listed("memory://new")) == number
    finally:
        monkeypatch.undo()
        system.rm("/new", recursive=True)


def test_what_a_file_system_raises_is_an_error_of_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(FilesError, match="none://logs cannot be read: Protocol not known: none"):
        listed("none://logs")
    with (
        pytest.raises(
            FilesError, match=r"none://logs/b\.000001 cannot be read: Protocol not known"
        ),
        opened(ByteRange("none://logs/b.000001", 0, 1, 1)),
    ):
        pass

    def isdir(_path: str) -> bool:
        raise RuntimeError("no credentials")

    monkeypatch.setattr(fsspec.filesystem("memory"), "isdir", isdir)
    with pytest.raises(FilesError, match="memory://logs cannot be read: no credentials"):
        listed("memory://logs")


def test_an_address_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(FilesError, match="pip install fsspec"):
        listed("s3://bucket/logs")
