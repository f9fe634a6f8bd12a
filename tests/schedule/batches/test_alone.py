"""Which groups run alone, by their kinds and the settings."""

from dataclasses import replace

import pytest

from mtsd.model.group import Group, GroupKind
from mtsd.model.step import LoadFile, Rows, Step
from mtsd.schedule.batches.alone import BY_THEMSELVES, AloneRule
from tests.binlog.building import query
from tests.binlog.transactions import grouped
from tests.schedule.worlds.streams import group

DDL = AloneRule(ddl=True)
STATEMENTS = AloneRule(statements=True)
BOTH = AloneRule(ddl=True, statements=True)
ALL_BUT_ROWS = AloneRule(all_but_rows=True)
RULES = (BY_THEMSELVES, DDL, STATEMENTS, BOTH)

OF_DDL = {GroupKind.DDL, GroupKind.CREATE_SELECT}


ROWS = Rows((b"",))
FILE = LoadFile(b"")
(found,) = grouped(query(b"INSERT INTO t VALUES (1)", database=b"a"))
assert isinstance(found, Group)
(STATEMENT,) = found.steps


def holding(kind: GroupKind, *steps: Step) -> Group:
    return replace(group(1, "a", kind=kind), steps=steps)


@pytest.mark.parametrize("kind", GroupKind)
def test_a_group_that_says_so_runs_alone(kind: GroupKind) -> None:
    for rule in RULES:
        assert rule.applies_to(group(1, "a", kind=kind, alone=True))


@pytest.mark.parametrize("kind", GroupKind)
def test_everything_but_rows(kind: GroupKind) -> None:
    assert ALL_BUT_ROWS.applies_to(group(1, "a", kind=kind)) == (kind is not GroupKind.ROWS)


@pytest.mark.parametrize("kind", GroupKind)
def test_the_rest_goes_by_its_kind(kind: GroupKind) -> None:
    of_rows = holding(kind, ROWS)
    assert not BY_THEMSELVES.applies_to(of_rows)
    assert DDL.applies_to(of_rows) == (kind in OF_DDL)
    assert STATEMENTS.applies_to(of_rows) == (kind is GroupKind.STATEMENTS)
    assert BOTH.applies_to(of_rows) == (kind in OF_DDL or kind is GroupKind.STATEMENTS)


@pytest.mark.parametrize("kind", GroupKind)
def test_definitions_of_accounts(kind: GroupKind) -> None:
    for database in ("mysql", "a"):
        alone = kind in OF_DDL and database == "mysql"
        assert BY_THEMSELVES.applies_to(group(1, database, kind=kind)) == alone


@pytest.mark.parametrize("kind", GroupKind)
def test_definitions_in_some_databases(kind: GroupKind) -> None:
    rule = AloneRule(ddl_in=frozenset({"a", "b"}))
    assert rule.applies_to(group(1, "c", "b", kind=kind)) == (kind in OF_DDL)
    assert not rule.applies_to(group(1, "c", kind=kind))


@pytest.mark.parametrize("step", [STATEMENT, FILE])
@pytest.mark.parametrize("kind", [GroupKind.NON_TRANSACTIONAL, GroupKind.XA_PREPARE])
def test_a_group_of_either_format_goes_by_what_it_holds(kind: GroupKind, step: Step) -> None:
    mixed = holding(kind, ROWS, step)
    assert [rule.applies_to(mixed) for rule in RULES] == [False, False, True, True]
