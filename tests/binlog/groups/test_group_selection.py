"""`mtsd binlog` lists what is selected, exactly as it lists it among everything."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mtsd.apply.position.position_tables import ChannelRow
from mtsd.binlog.bytes.framing import MAGIC
from mtsd.cli.listing.group_selection import Selection, previous_gtids, wanted_gtids, wanted_table
from mtsd.cli.listing.listed_files import local_files
from mtsd.model.gtid import Gtid
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import Position
from mtsd.operations.group_place import where_is
from mtsd.operations.recorded import Recorded
from tests.binlog.binlog_command import mtsd_binlog
from tests.binlog.recording import Recording
from tests.binlog.transactions import begin, in_stream, rows, table_map, xid

Found = dict[str, Any]
NOT_FOUND = 1
MISSING = "3e11fa47-71ca-11e1-9e33-c80aa9429562:7"


class Listing:
    """Runs the command on the files of a recording."""

    def __init__(self, files: Sequence[Path], capsys: pytest.CaptureFixture[str]) -> None:
        self._files = files
        self._capsys = capsys
        self.warned = ""

    def of(self, *options: str, status: int = 0) -> str:
        assert mtsd_binlog(*options, *self._files) == status
        said = self._capsys.readouterr()
        self.warned = said.err
        return said.err if status else said.out

    def groups(self, *options: str) -> list[Found]:
        """Return the groups without their numbers, which a selection may leave out."""
        found = [json.loads(line) for line in self.of("--json", *options).splitlines()]
        return [{name: group[name] for name in group if name != "number"} for group in found]

    def events(self, *options: str) -> list[Found]:
        return [json.loads(line) for line in self.of("--json", *options).splitlines()]


@pytest.fixture
def listing(recording: Recording, capsys: pytest.CaptureFixture[str]) -> Listing:
    return Listing(recording.files, capsys)


def place(group: Found) -> str:
    return f"{group['file']}:{group['pos']}"


def test_by_gtid(listing: Listing) -> None:
    every = listing.groups()
    events = listing.events("--events")
    in_rows = listing.events("--rows")
    # Each event of a group ends after the group before it, or is in a payload.
    for before, group in list(pairwise(every))[::7]:
        assert listing.groups("--gtid", group["gtid"]) == [group]
        if before["file"] == group["file"]:
            for option, whole in (("--events", events), ("--rows", in_rows)):
                found = listing.events(option, "--gtid", group["gtid"])
                at = whole.index(found[0])
                assert found == whole[at : at + len(found)]
                ends = [each["pos"] for each in found if each["pos"]]
                assert before["pos"] < min(ends)
                assert max(ends) == group["pos"]
    several = [every[3], every[4], every[-1]]
    named = ",".join(each["gtid"] for each in several)
    assert listing.groups("--gtid", named) == several
    assert listing.groups("--gtid", f"{named},{MISSING}") == several
    assert f"warning: {MISSING} is in none of them" in listing.warned
    said = listing.of("--gtid", MISSING, status=NOT_FOUND)
    assert f"a group with GTID {MISSING} is not in " in said
    assert listing.of("--gtid", every[0]["gtid"]).splitlines()[1].split()[1] == "-"


def test_only_the_files_that_have_the_gtids_are_read(
    recording: Recording, listing: Listing
) -> None:
    files = local_files(recording.files)
    began = [previous_gtids(file) for file in files]
    assert len(files) > 1
    for group in listing.groups():
        wanted = wanted_gtids(group["gtid"])
        assert [file.name for file in Selection(gtids=wanted).reads(files)] == [group["file"]]
        number = [file.name for file in files].index(group["file"])
        gtid = Gtid.parse(group["gtid"])
        assert [before is not None and gtid in before for before in began] == [
            at > number for at in range(len(files))
        ]


def test_by_place(listing: Listing) -> None:
    every = listing.groups()
    same = [group for group in every if group["file"] == every[0]["file"]]
    first, second, third, fourth = same[2:6]
    assert listing.groups("--position", place(third)) == [third]
    assert listing.groups("--from", place(first), "--to", place(third)) == [second, third]
    # From inside of a group, the group is listed.
    inside = f"{third['file']}:{third['pos'] - 1}"
    assert listing.groups("--from", inside, "--limit", "2") == [third, fourth]
    assert listing.groups("--from", inside, "--to", inside) == [third]
    assert listing.groups("--to", place(same[1])) == same[:2]
    assert listing.groups("--from", place(every[-2])) == every[-1:]
    said = listing.of("--position", inside, status=NOT_FOUND)
    assert f"a group that ends at {inside} is not in {third['file']}" in said
    said = listing.of("--from", "other.000001:4", status=NOT_FOUND)
    assert "there is no binary log file other.000001 among them" in said


def test_by_table_and_database(listing: Listing) -> None:
    every = listing.groups()
    known = [each for each in listing.events("--rows") if each.get("table")]
    table = known[0]["schema"], known[0]["table"]
    own = [each for each in known if (each["schema"], each["table"]) == table]
    named = f"{table[0]}.{table[1]}"
    found = listing.events("--rows", "--table", named)
    assert [each for each in found if each["type"] == "row"] == own
    changing = {each["gtid"] for each in own}
    groups = listing.groups("--table", named)
    assert changing <= {group["gtid"] for group in groups}
    assert len(groups) < len(every)
    # A definition of the table is a change of it, too.
    assert any(group["kind"] == "ddl" for group in groups)
    in_database = [group for group in every if table[0] in group["databases"]]
    assert listing.groups("--database", table[0]) == in_database
    assert listing.groups("--database", table[0], "--limit", "2") == in_database[:2]
    both = ("--table", named, "--gtid", own[0]["gtid"])
    assert [group["gtid"] for group in listing.groups(*both)] == [own[0]["gtid"]]
    # What is said of the whole database may concern it.
    kinds = {group["kind"] for group in listing.groups("--table", f"{table[0]}.none")}
    assert "ddl" in kinds
    assert "rows" not in kinds


def test_where_a_number_leads() -> None:
    mark = LowWaterMark(7, Position("binlog.000003", 900), None)
    begun = Recorded(ChannelRow(mark, 1, "", ""), (), (), None, (), 0, None)
    assert where_is(8, begun, "") == mark
    for refused in (where_is(7, begun, ""), where_is(8, None, "")):
        assert isinstance(refused, Refused)
        assert "cannot be found by its number" in str(refused)


def test_gtids_of_a_mariadb_are_only_themselves() -> None:
    wanted = wanted_gtids("0-1-7, 2-1:3-4")
    assert Gtid("0-1", 7) in wanted
    assert Gtid("0-1", 6) not in wanted
    assert Gtid("2-1", 3) in wanted
    uuid = "3a9962e3-1111-1111-8344-02fc00000001"
    assert Gtid(uuid, 1) in wanted_gtids(f"{uuid}:1")
    assert wanted_table("`a b`.t") == ("a b", "t")


def test_groups_that_no_gtid_event_begins(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a MySQL 5.6 without GTIDs writes them."""
    description = recording.raw[0]
    groups = [event for _ in range(3) for event in (begin(), table_map(7), rows(7), xid())]
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + description + b"".join(in_stream(groups, 4 + len(description))))
    listing = Listing([path], capsys)
    first, second, third = listing.groups()
    assert listing.groups("--position", place(second)) == [second]
    assert listing.groups("--from", place(first)) == [second, third]
    assert listing.groups("--table", "d.t", "--limit", "2") == [first, second]
    (begins, *_, ends) = listing.events("--events", "--position", place(second))
    assert begins["fields"]["statement"] == "BEGIN"
    assert ends["pos"] == second["pos"]
