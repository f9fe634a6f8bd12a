from collections.abc import Iterable
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.bytes.checksum import verify_format_description
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.events.format_description import CHECKSUM_OFF, parse_format_description
from mtsd.binlog.groups.rewrite import of_own_length, plain_format_description, statements_of
from mtsd.model.errors import BinlogError
from tests.binlog.recording import Recording
from tests.binlog.row_statements import assert_as_few_as_can_be, check, source_statement, split
from tests.binlog.transactions import rows, sealed, table_map

LIMITS = st.integers(1, 800) | st.just(1 << 30)
SOURCE = st.lists(source_statement(), max_size=6).map(lambda found: list(chain(*found)))
MIXED = st.lists(source_statement((0, 2, 16)), max_size=6).map(lambda found: list(chain(*found)))


def types_of(statements: Iterable[bytes]) -> list[list[int]]:
    return [[found[4] for found in split(statement)] for statement in statements]


@given(SOURCE, LIMITS)
@settings(deadline=None)
def test_merged(source: list[bytes], limit: int) -> None:
    parts = check(list(statements_of(source, limit, merge=True)), source, limit)
    assert_as_few_as_can_be(parts, limit)


@given(MIXED, LIMITS)
@settings(deadline=None)
def test_not_merged(source: list[bytes], limit: int) -> None:
    parts = check(list(statements_of(source, limit, merge=False)), source, limit)
    assert all(len({change.statement for change in part}) == 1 for part in parts)
    for number in {change.statement for part in parts for change in part}:
        own = [part for part in parts if part[0].statement == number]
        assert_as_few_as_can_be(own, limit)


@given(SOURCE, LIMITS)
@settings(deadline=None)
def test_checksums_stripped_off_leave_no_trace(source: list[bytes], limit: int) -> None:
    stripped = [sealed(plain)[:-4] for plain in source]
    assert list(statements_of(stripped, limit, merge=True)) == list(
        statements_of(source, limit, merge=True)
    )


def test_small_statements_become_one() -> None:
    source = [table_map(1), rows(1), table_map(2), rows(2), table_map(1), rows(1)]
    assert types_of(statements_of(source, 1000, merge=True)) == [[19, 19, 30, 30, 30]]
    assert types_of(statements_of(source, 1000, merge=False)) == [[19, 30]] * 3


def test_a_table_that_is_not_changed_is_not_named() -> None:
    source = [table_map(1), table_map(2), rows(1)]
    assert types_of(statements_of(source, 1000, merge=True)) == [[19, 30]]


def test_nothing_to_change() -> None:
    for merge in (True, False):
        assert list(statements_of([], 1000, merge=merge)) == []
        assert list(statements_of([table_map(1)], 1000, merge=merge)) == []


def test_a_large_row_stands_alone_with_its_table() -> None:
    source = [table_map(1), rows(1, flags=0), rows(1, bytes(900), flags=0), rows(1)]
    assert types_of(statements_of(source, 500, merge=True)) == [[19, 30]] * 3


def test_a_definition_ends_with_its_statement() -> None:
    source = [table_map(1, table="a"), rows(1), table_map(1, table="b"), rows(1)]
    assert types_of(statements_of(source, 1000, merge=True)) == [[19, 30]] * 2


def test_a_table_of_the_same_name_may_have_two_ids() -> None:
    source = [table_map(1), rows(1), table_map(7), rows(7)]
    assert types_of(statements_of(source, 1000, merge=True)) == [[19, 19, 30, 30]]


@pytest.mark.parametrize("merge", [True, False])
def test_rows_of_nobody(merge: bool) -> None:
    with pytest.raises(BinlogError, match="table id 2, which has no table map"):
        list(statements_of([table_map(1), rows(2)], 1000, merge=merge))


def test_a_definition_is_known_until_the_end_of_its_statement() -> None:
    source = [table_map(1), rows(1), rows(1)]
    assert types_of(statements_of(source, 1000, merge=True)) == [[19, 30, 30]]
    with pytest.raises(BinlogError, match="table id 1, which has no table map"):
        list(statements_of(source, 1000, merge=False))


@given(st.binary(max_size=30), st.integers(0, 1 << 32))
def test_of_own_length(body: bytes, claimed: int) -> None:
    plain = rows(1, body)
    wrong = plain[:9] + (claimed & 0xFFFFFFFF).to_bytes(4, "little") + plain[13:]
    assert of_own_length(wrong) == plain


def test_format_descriptions_of_one_server_are_equal(recording: Recording) -> None:
    originals = [next(iter(FileFramer().feed(path.read_bytes()))) for path in recording.files]
    plain = {plain_format_description(original) for original in originals}
    assert len(originals) > 1
    assert len(set(originals)) > 1
    (description,) = plain
    before, after = map(parse_format_description, (originals[0], description))
    assert after.checksum_algorithm == CHECKSUM_OFF
    assert after.created == 0
    assert after.server_version == before.server_version
    assert after.post_header_lengths == before.post_header_lengths
    assert description[4] == EventType.FORMAT_DESCRIPTION_EVENT
    assert int.from_bytes(description[9:13], "little") == len(description) == len(originals[0])
    verify_format_description(description)
