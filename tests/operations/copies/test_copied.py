"""What the files of copies say, and where a channel begins after them."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.config.start import FilePosition, GtidStart
from mtsd.filter.filter import UNFILTERED, Filter
from mtsd.filter.rules import Rules
from mtsd.model.errors import NeedsPersonError
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import Position
from mtsd.operations.copies import clone
from mtsd.operations.copies.copied import (
    Copied,
    chosen,
    loaded,
    missing_of,
    not_loaded,
    start_of,
)
from mtsd.operations.copies.own_replica import past_the_mark
from mtsd.operations.copies.reading import parse_copied, read_copied
from mtsd.source.source_state import SourceState
from mtsd.wire.replica_status import replica_status
from tests.operations.copies.samples import (
    METADATA,
    MYSQLDUMP,
    OLD_METADATA,
    PARTS,
    REPLICA,
    SHELL_DUMP,
    U,
    V,
)

PLACE = Position("binlog.000003", 700)


@pytest.mark.parametrize(("head", "tail", "copied"), PARTS)
def test_each_program_says_its_place(head: str, tail: str, copied: Copied) -> None:
    assert parse_copied(head, tail)[0] == copied


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a file of a copy that is known"),
        ("-- MySQL dump 10.13\nCREATE TABLE t (i INT);\n", "--source-data=2"),
        (MYSQLDUMP + MYSQLDUMP.replace("811", "900"), "several places"),
        (OLD_METADATA.replace("Finished", "Not finished"), "has not finished"),
        ("Started dump at: 1\nFinished dump at: 2\n", "no place"),
        ("{", "not JSON"),
        ("[" * 10, "not a file of a copy that is known"),
        ('{"a": 1}', "gtidExecuted is missing"),
        (SHELL_DUMP.replace("true", "false"), "not consistent"),
        (SHELL_DUMP.replace('Inconsistent": false', 'Inconsistent": true'), "not consistent"),
        (REPLICA.replace("SQL_Running: No", "SQL_Running: Yes"), "still applies"),
        (MYSQLDUMP.replace(f"{U}:1-3", f"{U}:3-1"), "not an interval"),
    ],
)
def test_what_says_no_place_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_copied(text)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_damage_ends_in_a_reason(data: st.DataObject) -> None:
    head, tail, _ = data.draw(st.sampled_from(PARTS))
    text = head + tail
    at = data.draw(st.integers(0, len(text)))
    other = data.draw(st.one_of(st.text(max_size=20), st.sampled_from([each[0] for each in PARTS])))
    damaged = text[:at] + other + text[data.draw(st.integers(at, len(text))) :]
    with suppress(ValueError):
        parse_copied(damaged, damaged[at:])


def test_folders_and_files(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text(METADATA)
    assert [each.source_uuid for each in read_copied(tmp_path)] == ["", U]
    (tmp_path / "metadata").rename(tmp_path / "metadata.partial")
    with pytest.raises(NeedsPersonError, match="has not finished"):
        read_copied(tmp_path)
    (tmp_path / "metadata.partial").unlink()
    with pytest.raises(NeedsPersonError, match="has none of"):
        read_copied(tmp_path)
    (tmp_path / "@.json").write_text(SHELL_DUMP)
    with pytest.raises(NeedsPersonError, match=r"@\.done\.json is missing"):
        read_copied(tmp_path)
    (tmp_path / "@.done.json").touch()
    assert read_copied(tmp_path)[0].maker == "MySQL Shell's dump"
    with pytest.raises(NeedsPersonError, match="No such file"):
        read_copied(tmp_path / "nothing")
    (compressed := tmp_path / "dump.sql.gz").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(NeedsPersonError, match="zcat"):
        read_copied(compressed)
    (large := tmp_path / "dump.sql").write_text(
        "-- MariaDB dump 10.19\n" + "-- a row\n" * 300_000 + "SET GLOBAL gtid_slave_pos='0-1-5';\n"
    )
    assert read_copied(large)[0].gtids == GtidSet.parse("0-1-5")


def source(executed: str, *, gtid_mode: bool = True) -> SourceState:
    return SourceState(U, gtid_mode, GtidSet.parse(executed))


def test_gtids_are_believed_before_a_place() -> None:
    copied = Copied("dump", PLACE, GtidSet.parse(f"{U}:1-7,{V}:1-2"))
    everything = source(f"{U}:1-9")
    # What the source lacks is refused where every start is (`mtsd.source.start`).
    assert start_of(copied, everything) == GtidStart(f"{U}:1-7,{V}:1-2")
    of_replica = parse_copied(REPLICA)[0]
    assert start_of(of_replica, everything) == GtidStart(f"{U}:1-7")
    place = FilePosition(PLACE.file, PLACE.offset)
    assert start_of(copied, source("", gtid_mode=False)) == place
    assert start_of(Copied("dump", PLACE), everything) == place
    assert start_of(Copied("dump", PLACE, GtidSet()), everything) == place
    # A MariaDB that has lost its last transactions is still the one that was copied.
    beyond = Copied("dump", PLACE, GtidSet.parse("0-1-120"))
    assert start_of(beyond, source("0-1-100")) == GtidStart("0-1-120")


@pytest.mark.parametrize(
    ("copied", "gtid_mode", "why"),
    [
        (Copied("dump", PLACE, GtidSet.parse(f"{V}:1-2")), True, "of another server"),
        (Copied("dump", PLACE, GtidSet.parse("0-1-5")), True, "of another server"),
        (Copied("dump", None, GtidSet.parse(f"{U}:1-2")), False, "by GTID only"),
        (Copied("replica", PLACE, None, V), True, "binary log of server"),
    ],
)
def test_a_copy_of_another_server_is_refused(copied: Copied, gtid_mode: bool, why: str) -> None:
    refused = start_of(copied, source(f"{U}:1-9", gtid_mode=gtid_mode))
    assert isinstance(refused, Refused)
    assert why in str(refused)


def test_a_copy_of_a_replica_has_the_place_of_its_source() -> None:
    copies = parse_copied(METADATA)
    assert chosen(copies, V).position == Position("replica-bin.000017", 241149225)
    of_source = chosen(copies, U.upper())
    assert of_source.position == Position("binlog.000001", 811)
    assert start_of(of_source, source(f"{U}:1-9")) == GtidStart(f"{U}:1-3")


def test_a_database_without_any_table_was_not_loaded() -> None:
    tables = [("shop", "orders"), ("shop", "new"), ("blog", "posts")]
    whole, shop = Copied("dump", PLACE), Copied("dump", PLACE, databases=frozenset({"SHOP"}))

    def told(
        copied: Copied, there: list[tuple[str, str]], rules: Filter = UNFILTERED
    ) -> tuple[str, str]:
        found = loaded(copied, rules, tables, there)
        return str(not_loaded(copied, found) or ""), missing_of(found)

    part = [("Shop", "orders")]
    assert told(whole, part) == ("", "blog.posts, shop.new")
    assert told(shop, part) == ("", "shop.new")
    assert told(shop, [*part, ("shop", "NEW")]) == ("", "")
    assert "blog, shop" in told(whole, [])[0]
    assert "in shop," in told(shop, [("blog", "posts")])[0]
    renamed = Filter(Rules(do_db=("store",), rewrite_db=(("shop", "store"),)))
    assert told(whole, [("store", "orders")], renamed) == ("", "shop.new")
    assert told(whole, part, renamed)[0]
    assert not_loaded(whole, {}) is None


def test_a_clone_that_failed_has_no_place() -> None:
    done = clone.copied_by([("Completed", "binlog.000003", 700, f"{U}:1-3")])
    assert (done.position, done.gtids) == (PLACE, GtidSet.parse(f"{U}:1-3"))
    for rows in ([], [("Failed", "", 0, "")], [("Completed", "", 0, "")]):
        with pytest.raises(NeedsPersonError, match="was not cloned"):
            clone.copied_by(rows)


def test_a_worker_past_the_place_leaves_gaps() -> None:
    status = replica_status(
        {"Channel_Name": "a", "Relay_Source_Log_File": "binlog.000003", "Exec_Source_Log_Pos": 700}
    )
    others = [("a", PLACE), ("b", Position("binlog.000009", 4)), ("a", Position("", 0))]
    assert past_the_mark(status, others) is None
    refused = past_the_mark(status, [*others, ("a", Position("binlog.000003", 900))])
    assert "SQL_AFTER_MTS_GAPS" in str(refused)
