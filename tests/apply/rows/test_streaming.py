from itertools import chain, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.apply.rows.streaming import RowStream
from tests.binlog.row_statements import check, source_statement, split
from tests.binlog.transactions import rows, table_map

SOURCE = st.lists(source_statement((0, 2, 16)), max_size=5).map(lambda found: list(chain(*found)))


def streamed(chunks: list[list[bytes]], limit: int) -> list[bytes]:
    stream = RowStream(limit)
    return [statement for chunk in chunks for statement in stream.statements(tuple(chunk))]


def cut(events: list[bytes], cuts: list[int]) -> list[list[bytes]]:
    return [events[begin:end] for begin, end in pairwise([0, *sorted(cuts), len(events)])]


@given(SOURCE, st.lists(st.integers(0, 40), max_size=8), st.integers(1, 800) | st.just(1 << 30))
@settings(deadline=None)
def test_chunks_may_end_anywhere(source: list[bytes], cuts: list[int], limit: int) -> None:
    parts = check(streamed(cut(source, cuts), limit), source, limit)
    assert all(len({change.statement for change in part}) == 1 for part in parts)


@given(SOURCE)
@settings(deadline=None)
def test_one_chunk_is_the_source_s_statements(source: list[bytes]) -> None:
    parts = check(streamed([source], 1 << 30), source, 1 << 30)
    numbers = [change.statement for part in parts for change in part]
    assert len(parts) == len(set(numbers))


def test_a_chunk_of_table_maps_only() -> None:
    chunks = [[table_map(1)], [table_map(2)], [rows(2, flags=0)], [rows(1)]]
    assert [[found[4] for found in split(one)] for one in streamed(chunks, 1000)] == [[19, 30]] * 2


def test_maps_do_not_outlive_their_statement() -> None:
    stream = RowStream(1000)
    for _ in range(1000):
        events = (table_map(1), *(table_map(number) for number in range(2, 5)), rows(1))
        assert len(list(stream.statements(events))) == 1
    assert len(stream._maps) == 4


def test_maps_of_a_statement_without_an_end_do_not_pile_up() -> None:
    stream = RowStream(1000)
    for _ in range(1000):
        assert len(list(stream.statements((table_map(1), rows(1, flags=0))))) == 1
    assert len(stream._maps) == 1
