from base64 import b64decode
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.apply.rows import bundle
from mtsd.apply.rows.bundle import Command, Setting, binlog_statement, commands, row_statements
from mtsd.binlog.bytes.event_type import EventType
from mtsd.model.errors import NeedsPersonError
from tests.binlog.row_statements import assert_as_few_as_can_be, check, source_statement, split
from tests.binlog.transactions import group_of, rows, table_map

LIMITS = st.integers(1, 800) | st.just(1 << 30)
TRANSACTIONS = st.lists(
    st.sampled_from([(0,), (2,), (0, 2, 16)]).flatmap(
        lambda flags: st.lists(source_statement(flags), min_size=1, max_size=3)
    ),
    max_size=6,
)


def flags_of(statement: bytes) -> set[int]:
    """Return the flags of a statement's row events, less the one that ends it."""
    return {found[25] & ~1 for found in split(statement) if found[4] != EventType.TABLE_MAP_EVENT}


@given(TRANSACTIONS, LIMITS)
@settings(deadline=None, max_examples=60)
def test_groups_merged(transactions: list[list[list[bytes]]], limit: int) -> None:
    groups = [group_of(list(chain(*statements))) for statements in transactions]
    statements = list(row_statements(groups, limit))
    source = [event for group in groups for event in group.rows]
    parts = check(statements, source, limit)
    for statement, part in zip(statements, parts, strict=True):
        # The server reads the flags once a statement, so they may differ only where they did.
        one = len({change.statement for change in part}) == 1
        assert one or len(flags_of(statement)) == 1


@given(TRANSACTIONS.filter(lambda found: len(found) > 1))
@settings(deadline=None, max_examples=30)
def test_groups_of_equal_flags_become_one_statement(
    transactions: list[list[list[bytes]]],
) -> None:
    statements = [
        [event[:25] + bytes((event[25] & 1,)) + event[26:] for event in chain(*found)]
        for found in transactions
    ]
    groups = [group_of(found) for found in statements]
    assert {group.row_flags for group in groups} == {0}
    limit = 1 << 30
    source = [event for group in groups for event in group.rows]
    assert_as_few_as_can_be(check(list(row_statements(groups, limit)), source, limit), limit)


def test_groups_of_differing_flags_stay_apart() -> None:
    plain = group_of([table_map(1), rows(1)])
    unchecked = group_of([table_map(1), rows(1, flags=3)])
    mixed = group_of([table_map(1), rows(1, flags=0x12), rows(1, flags=0x11)])
    assert (plain.row_flags, unchecked.row_flags, mixed.row_flags) == (0, 2, None)
    groups = [plain, plain, unchecked, mixed, mixed, plain, unchecked, unchecked]
    found = [
        [event[25] for event in split(statement)[1:]] for statement in row_statements(groups, 1000)
    ]
    assert found == [[0, 1], [3], [0x12, 0x11], [0x12, 0x11], [1], [2, 3]]


def test_what_a_cascade_differs_from_is_merged() -> None:
    group = group_of(
        [
            *(table_map(1), rows(1, flags=0x11)),
            *(table_map(2), rows(2, flags=0x11)),
            *(table_map(1), table_map(2), rows(2, flags=0x12), rows(1, flags=0x11)),
        ]
    )
    found = [
        [event[25] for event in split(statement) if event[4] != EventType.TABLE_MAP_EVENT]
        for statement in row_statements([group, group], 1000)
    ]
    assert found == [[0x10, 0x11], [0x12, 0x11], [0x10, 0x11], [0x12, 0x11]]


def test_no_groups() -> None:
    assert list(row_statements([], 100)) == []


ROWS: list[bytes | Setting] = [
    *(bytes((number,)) * size for number, size in enumerate((30, 3, 700, 0, 90, 90))),
    Setting(b"SET @@session.sql_mode=64"),
    Setting(b"SET " + bytes(400)),
]


@given(
    st.lists(st.sampled_from(ROWS), max_size=8),
    st.lists(st.just(b"BEGIN"), max_size=2),
    st.lists(st.sampled_from([b"UPDATE", b"COMMIT"]), max_size=3),
    st.integers(1000, 5000),
    st.sampled_from([0, 500, 1 << 23]),
)
@settings(deadline=None)
def test_commands_hold_every_statement_once(
    parts: list[bytes | Setting], before: list[bytes], after: list[bytes], limit: int, enough: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundle, "ENOUGH", enough)
        found = list(commands(before, parts, after, limit))
    rows = (part.sql if isinstance(part, Setting) else binlog_statement(part) for part in parts)
    wanted = [*before, *rows, *after]
    assert b";".join(command.sql for command in found) == b";".join(wanted)
    for command in found:
        assert len(command.sql) <= limit
        assert command.statements == command.sql.count(b";") + 1
        assert command.statements
    assert sum(command.statements for command in found) == len(wanted)


def test_one_command_where_it_fits() -> None:
    assert list(commands([b"BEGIN"], [b"a", b"b"], [b"COMMIT"], 1000)) == [
        Command(b"BEGIN;BINLOG 'YQ==';BINLOG 'Yg==';COMMIT", 4)
    ]


def test_an_empty_statement_is_never_sent() -> None:
    # The server would answer it with error 1065, which nobody awaits.
    assert list(commands([], [], [], 1000)) == []


def test_a_row_that_the_target_cannot_take() -> None:
    events = bytes(1000)
    size = len(binlog_statement(events))
    assert len(list(commands([b"BEGIN"], [events], [b"COMMIT"], size))) == 3
    with pytest.raises(NeedsPersonError, match="raise max_allowed_packet on the target"):
        list(commands([b"BEGIN"], [events], [b"COMMIT"], size - 1))


@given(st.binary(max_size=200))
def test_binlog_statement(events: bytes) -> None:
    statement = binlog_statement(events)
    assert statement.startswith(b"BINLOG '")
    assert statement.endswith(b"'")
    assert b64decode(statement[8:-1], validate=True) == events
