import json
import subprocess
import sys
from pathlib import Path

import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.gtid_event import GtidEvent
from mtsd.cli.listing.event_listing import SHORT, event_lines
from tests.binlog.binlog_command import mtsd_binlog
from tests.binlog.building import query
from tests.binlog.recording import Recording


def test_groups_for_people(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    assert mtsd_binlog(*recording.files) == 0
    titles, *lines = capsys.readouterr().out.splitlines()
    assert titles.split() == [
        "POSITION", "NUMBER", "KIND", "COMMIT", "TIME", "BYTES", "LC", "SEQ", "GTID", "DATABASES",
    ]  # fmt: skip
    heads = recording.decoded(GtidEvent)
    assert len(lines) == len(heads)
    first = lines[0].split()
    assert first[:3] == [f"{recording.files[0].name}:{first[0].rpartition(':')[2]}", "1", "ddl"]
    assert lines[0].split()[-2:] == [str(heads[0].gtid), "d1"]
    # Every column begins where its title does.
    place = titles.index("COMMIT")
    assert {line[place - 2 : place] for line in lines} == {"  "}
    assert {line[place : place + 4] for line in lines} == {lines[0][place : place + 4]}


def test_indexes_that_a_pattern_finds_are_left_out(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = recording.files[0]
    index = tmp_path / f"{first.name}.idx"
    index.write_bytes(b"MariaDB")
    (tmp_path / first.name).symlink_to(first)
    assert mtsd_binlog(tmp_path / first.name, index) == 0
    both = capsys.readouterr().out
    assert mtsd_binlog(first) == 0
    assert both == capsys.readouterr().out
    assert mtsd_binlog(index) == 3
    assert "not a binary log" in capsys.readouterr().err


def test_groups_as_json(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    assert mtsd_binlog("--json", *recording.files) == 0
    groups = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [group["number"] for group in groups] == list(range(1, len(groups) + 1))
    heads = recording.decoded(GtidEvent)
    assert [group["gtid"] for group in groups] == [str(head.gtid) for head in heads]
    assert [group["commit_time"] for group in groups] == [
        head.immediate_commit_time for head in heads
    ]
    assert [group["file"] for group in groups] == sorted(group["file"] for group in groups)
    kinds = {group["kind"] for group in groups}
    assert {"ddl", "rows", "statements", "create_select", "non_transactional"} <= kinds
    ends = {path.name: path.stat().st_size for path in recording.files}
    assert all(group["pos"] < ends[group["file"]] for group in groups)


def test_events_for_people(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    assert mtsd_binlog("--events", *recording.files) == 0
    titles, *lines = capsys.readouterr().out.splitlines()
    assert titles.split() == ["POSITION", "TYPE", "BYTES", "WHAT"]
    assert len(lines) == len(recording.events)
    assert f"{recording.files[0].name}:127" in lines[0]
    assert "FORMAT_DESCRIPTION_EVENT" in lines[0]
    assert f"server {recording.server.installation.version}" in lines[0]
    assert any("d1.keyed table_id=" in line for line in lines)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("space", [b" ", b"\n" + b" " * 500, b"\r\n\t" * 200])
@pytest.mark.parametrize("word", ["a", "é€😀", "\u3000" * 99])
def test_a_statement_is_whole_or_is_seen_to_be_cut_off(space: bytes, word: str) -> None:
    for count in (1, 24, 49, 50, 51, 101, 300):
        statement = space.join([b"DELETE", *[word.encode()] * count, b"END"])
        (line,) = event_lines("f.000001", [query(statement)])
        assert line.summary(SHORT).endswith("…" if len(line.summary(1 << 20)) > SHORT else "END")
        assert len(line.summary(SHORT)) <= SHORT


def test_events_as_json(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    assert mtsd_binlog("--events", "--json", *recording.files) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["type"] for event in events] == [
        EventType(raw[4]).name for raw in recording.events
    ]
    inner = [event["type"] for event in events if event["inner"]]
    assert inner[0] == "QUERY_EVENT"
    assert inner[-1] == "XID_EVENT"
    fields = {event["type"]: event["fields"] for event in events}
    assert fields["TABLE_MAP_EVENT"]["optional"].startswith("01")
    assert fields["XA_PREPARE_LOG_EVENT"]["gtrid"] == "one"
    assert fields["USER_VAR_EVENT"]["name"] == "s"
    assert fields["QUERY_EVENT"]["statement"].startswith("DROP TABLE `again`,")
    assert fields["QUERY_EVENT"]["context"]["foreign_key_checks"] is True


def test_damage_is_told_with_its_place(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(recording.files[0].read_bytes())
    place = int.from_bytes(recording.raw[1][13:17], "little") + 30
    content[place] ^= 1
    damaged = tmp_path / "binlog.000007"
    damaged.write_bytes(content)
    for option in ("--events", "--json"):
        assert mtsd_binlog(option, damaged) == 3
        declared = capsys.readouterr().err
        assert declared.startswith("mtsd: error: checksum mismatch")
        assert "binlog.000007:" in declared


def test_a_file_cut_off_and_one_that_is_none(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = tmp_path / "binlog.000001"
    short.write_bytes(recording.files[0].read_bytes()[:-3])
    assert mtsd_binlog(short) == 3
    assert f"error: {short}: the file ends inside an event" in capsys.readouterr().err
    short.write_bytes(b"anything else")
    assert mtsd_binlog("--events", short) == 3
    assert f"error: {short}: not a binary log" in capsys.readouterr().err
    assert mtsd_binlog("--events", tmp_path) == 2
    assert capsys.readouterr().err == f"mtsd: error: {tmp_path}: Is a directory\n"


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mtsd_binlog(tmp_path / "binlog.000001") == 2
    missing = f"there is no binary log file {tmp_path / 'binlog.000001'} on this machine"
    assert missing in capsys.readouterr().err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        mtsd_binlog("--help")
    assert "example:\n  mtsd binlog /" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--events", "--rows"])
def test_a_reader_that_has_had_enough(recording: Recording, option: str) -> None:
    words = [sys.executable, "-m", "mtsd", "binlog", option, "--json"]
    with subprocess.Popen(
        [*words, *map(str, recording.files)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
