"""Which groups run alone, by their kinds and the settings."""

import pytest

from mtsd.binlog.event_type import EventType
from mtsd.model.group import Group, GroupKind
from mtsd.schedule.alone import BY_THEMSELVES, AloneRule
from tests.schedule.streams import group

DDL = AloneRule(ddl=True)
STATEMENTS = AloneRule(statements=True)
BOTH = AloneRule(ddl=True, statements=True)
RULES = (BY_THEMSELVES, DDL, STATEMENTS, BOTH)

OF_DDL = {GroupKind.DDL, GroupKind.CREATE_SELECT}


def event(code: EventType) -> bytes:
    return bytes([0, 0, 0, 0, code.value])


def holding(kind: GroupKind, *codes: EventType) -> Group:
    return group(1, "a", kind=kind)._replace(events=tuple(map(event, codes)))


@pytest.mark.parametrize("kind", GroupKind)
def test_a_group_that_says_so_runs_alone(kind: GroupKind) -> None:
    for rule in RULES:
        assert rule.applies_to(group(1, "a", kind=kind, alone=True))


@pytest.mark.parametrize("kind", GroupKind)
def test_the_rest_goes_by_its_kind(kind: GroupKind) -> None:
    of_rows = holding(kind, EventType.TABLE_MAP_EVENT, EventType.WRITE_ROWS_EVENT)
    assert not BY_THEMSELVES.applies_to(of_rows)
    assert DDL.applies_to(of_rows) == (kind in OF_DDL)
    assert STATEMENTS.applies_to(of_rows) == (kind is GroupKind.STATEMENTS)
    assert BOTH.applies_to(of_rows) == (kind in OF_DDL or kind is GroupKind.STATEMENTS)


@pytest.mark.parametrize("code", [EventType.QUERY_EVENT, EventType.EXECUTE_LOAD_QUERY_EVENT])
@pytest.mark.parametrize("kind", [GroupKind.NON_TRANSACTIONAL, GroupKind.XA_PREPARE])
def test_a_group_of_either_format_goes_by_what_it_holds(kind: GroupKind, code: EventType) -> None:
    mixed = holding(kind, EventType.TABLE_MAP_EVENT, EventType.WRITE_ROWS_EVENT, code)
    assert [rule.applies_to(mixed) for rule in RULES] == [False, False, True, True]
