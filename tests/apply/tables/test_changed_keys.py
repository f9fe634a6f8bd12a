"""Which keys groups get: of rows, tables and databases, before and after definitions."""

from dataclasses import replace

import pytest

from mtsd.apply.tables.changed_keys import ChangedKeys
from mtsd.apply.tables.column_fit import ColumnShape
from mtsd.apply.tables.key_definitions import (
    DefinedColumn,
    TableName,
    UniqueKeys,
    UniquePart,
)
from mtsd.apply.tables.table_columns import TableColumn
from mtsd.binlog.values.column_type import ColumnType
from mtsd.model.group import Group, GroupKind
from mtsd.model.step import LoadFile, Rows, Step
from mtsd.model.temporary_tables import TemporaryUse
from tests.apply.tables.known_keys import (
    CHILD,
    INT,
    KEYED,
    PARENT,
    REFERS,
    UNKEYED,
    T,
    U,
    column,
    known,
    row,
)
from tests.binlog.building import query
from tests.binlog.transactions import grouped, rows, table_map
from tests.schedule.worlds.simulated_run import may_conflict
from tests.schedule.worlds.streams import group


def changing(
    table: TableName, *numbers: int, number: int = 1, kind: GroupKind = GroupKind.ROWS
) -> Group:
    events = (table_map(1, *table), rows(1, b"".join(map(row, numbers))))
    return replace(group(number, table[0], kind=kind), steps=(Rows(events),))


def statement(database: str, text: bytes, number: int = 1) -> Group:
    (found,) = grouped(query(text, database=database.encode()))
    assert isinstance(found, Group)
    return replace(found, number=number, databases=(database,), alone=False)


def meet(fill: ChangedKeys, one: Group, other: Group) -> bool:
    return may_conflict(fill(one).keys, fill(other).keys)


def test_rows_of_a_table() -> None:
    fill = ChangedKeys(known())
    for _ in range(2):
        keys = fill(changing(T, 1, 2)).keys
        assert len(keys.rows) == 2
        assert len(keys.parts) == 2
        assert not keys.wholes
    assert not meet(fill, changing(T, 1), changing(T, 2))
    assert meet(fill, changing(T, 1), changing(T, 3, 1))
    assert not meet(fill, changing(T, 1), changing(U, 1))
    both = replace(changing(T, 1), steps=changing(T, 1).steps + changing(U, 5).steps)
    assert meet(fill, both, changing(U, 5))
    assert meet(fill, both, changing(T, 1))
    assert not meet(fill, both, changing(U, 1))


def test_a_table_without_a_key_is_a_whole() -> None:
    fill = ChangedKeys(known(unkeyed=UNKEYED, keyed=KEYED))
    assert meet(fill, changing(("e", "unkeyed"), 1), changing(("e", "unkeyed"), 2))
    assert not meet(fill, changing(("e", "unkeyed"), 1), changing(("e", "keyed"), 1))
    assert meet(fill, changing(("e", "unknown"), 1), changing(("e", "unknown"), 2))
    assert meet(fill, changing(("mysql", "user"), 1), changing(("mysql", "other"), 2))


def test_a_table_with_columns_of_other_types_is_a_whole() -> None:
    for shape in (ColumnShape(ColumnType.LONGLONG, 8), ColumnShape(ColumnType.SHORT, 2), None):
        fill = ChangedKeys(known(other=replace(KEYED, columns=(column("id", shape),))))
        assert meet(fill, changing(("e", "other"), 1), changing(("e", "other"), 2))
    more = replace(KEYED, columns=(column("id"), column("v")))
    fill = ChangedKeys(known(other=more))
    assert meet(fill, changing(("e", "other"), 1), changing(("e", "other"), 2))


def test_a_primary_key_that_only_the_target_has_moves_the_other_columns() -> None:
    """Where the source has a column that the target lacks, the numbers of columns are equal."""
    added = DefinedColumn(TableColumn("my_row_id", "int", INT, "", "INVISIBLE"), nullable=False)
    fill = ChangedKeys(known(other=UniqueKeys("innodb", (added,), ((UniquePart("my_row_id"),),))))
    assert meet(fill, changing(("e", "other"), 1), changing(("e", "other"), 2))


def test_a_table_with_document_ids_is_a_whole() -> None:
    documents = replace(
        KEYED, columns=(column("FTS_DOC_ID"),), unique=((UniquePart("FTS_DOC_ID"),),)
    )
    fill = ChangedKeys(known(other=documents))
    assert meet(fill, changing(("e", "other"), 1), changing(("e", "other"), 2))


@pytest.mark.parametrize(
    "found",
    [replace(KEYED, engine="federated"), replace(KEYED, engine="mrg_myisam"),
     replace(KEYED, triggers=True)],
    ids=["rows of another server", "rows of other tables", "triggers"],
)  # fmt: skip
def test_what_may_change_anything_runs_alone(found: UniqueKeys) -> None:
    fill = ChangedKeys(known(other=found))
    assert fill(changing(("e", "other"), 1)).alone
    assert not fill(changing(T, 1)).alone


def test_what_is_not_only_rows_is_of_its_databases() -> None:
    fill = ChangedKeys(known())
    mixed: tuple[Step, ...] = (*changing(T, 1).steps, LoadFile(b""))
    for other in (
        statement("d", b"DELETE FROM t"),
        replace(changing(T, 1), steps=mixed),
        replace(changing(T, 1), steps=(Rows((rows(1, row(1)),)),)),
        replace(changing(T, 1), steps=()),
    ):
        assert meet(fill, other, changing(T, 2))
        assert meet(fill, changing(U, 2), other)
        assert not meet(fill, other, changing(PARENT, 2))


def test_a_completion_of_which_only_the_databases_are_known() -> None:
    fill = ChangedKeys(known(REFERS))
    complete = group(1, "c", kind=GroupKind.XA_COMPLETE)
    assert meet(fill, complete, changing(CHILD, 1))
    assert meet(fill, changing(PARENT, 1), complete)
    assert not meet(fill, complete, changing(T, 1))
    assert fill(changing(T, 1, kind=GroupKind.XA_PREPARE)).keys.rows


def test_more_rows_than_are_kept_are_a_whole() -> None:
    fill = ChangedKeys(known())
    assert not meet(fill, changing(T, *range(10_000)), changing(T, 50_000))
    assert meet(fill, changing(T, *range(20_000)), changing(T, 50_000))


def test_names_that_are_not_case_sensitive() -> None:
    fill = ChangedKeys(known(), fold_case=True)
    assert meet(fill, changing(("D", "T"), 1), changing(T, 1))
    assert not meet(fill, changing(("D", "T"), 1), changing(T, 2))
    assert meet(fill, statement("D", b"DELETE FROM t"), changing(T, 2))


def test_bound_databases_are_one() -> None:
    fill = ChangedKeys(known(), bind=[["d", "p"]])
    assert meet(fill, changing(T, 1), changing(PARENT, 2))
    assert meet(fill, statement("p", b"DELETE FROM x"), changing(T, 2))
    assert not meet(fill, changing(T, 1), changing(CHILD, 1))


def test_foreign_keys_to_another_database() -> None:
    fill = ChangedKeys(known(REFERS))
    assert meet(fill, changing(PARENT, 1), changing(CHILD, 1))
    assert not meet(fill, changing(PARENT, 1), changing(CHILD, 2))
    assert meet(fill, statement("c", b"DELETE FROM x"), changing(PARENT, 2))
    assert meet(fill, changing(CHILD, 2), statement("p", b"DELETE FROM x"))
    assert not meet(fill, statement("c", b"DELETE FROM x"), changing(T, 2))
    hidden = replace(REFERS, columns=(), parent_columns=())
    fill = ChangedKeys(known(hidden))
    assert meet(fill, changing(PARENT, 1), changing(CHILD, 2))
    fill = ChangedKeys(known(replace(REFERS, parent=("e", "unknown"))))
    assert meet(fill, changing(CHILD, 1), changing(CHILD, 2))


def test_what_a_source_says_of_referring_tables_is_known_better() -> None:
    def referred(table: TableName, flags: int = 3) -> Group:
        events = (table_map(1, *table, flags=flags), rows(1, row(1)))
        return replace(changing(table, 1), steps=(Rows(events),), alone=True)

    fill = ChangedKeys(known(REFERS))
    assert not fill(referred(PARENT)).alone
    assert fill(referred(PARENT, flags=1)).alone
    assert fill(referred(("unknown", "t"))).alone
    assert fill(replace(statement("p", b"DELETE FROM x"), alone=True)).alone


def test_a_definition_is_apart_until_the_keys_are_read_again() -> None:
    fill = ChangedKeys(known())
    before, other = fill(changing(T, 1)), fill(changing(PARENT, 1))
    definition = fill(statement("d", b"ALTER TABLE t ADD x INT", 5))
    assert may_conflict(before.keys, definition.keys)
    assert not may_conflict(other.keys, definition.keys)
    after = fill(changing(T, 2, number=6))
    assert may_conflict(definition.keys, after.keys)
    assert may_conflict(after.keys, fill(changing(U, 3, number=7)).keys)
    assert not may_conflict(after.keys, fill(changing(PARENT, 3)).keys)
    # Only what has been applied can be read.
    assert not fill.due(lambda number: number < 5)
    due = fill.due(lambda number: number <= 5)
    assert due == {"d": 5}
    fill.learn(known(), due)
    assert not fill.due(lambda _: True)
    # The first one after it is apart, too: those before it have other keys.
    first, second, third = (fill(changing(T, number)) for number in (7, 8, 9))
    assert may_conflict(after.keys, first.keys)
    assert may_conflict(first.keys, second.keys)
    assert not may_conflict(second.keys, third.keys)
    assert not may_conflict(second.keys, fill(changing(U, 8)).keys)


def test_what_was_read_before_another_definition_does_not_count() -> None:
    fill = ChangedKeys(known())
    fill(statement("d", b"ALTER TABLE t ADD x INT", 5))
    due = fill.due(lambda _: True)
    fill(statement("d", b"ALTER TABLE t ADD y INT", 6))
    fill.learn(known(), due)
    fill(changing(T, 1))
    assert meet(fill, changing(T, 1), changing(T, 2))
    assert not fill.due(lambda number: number < 6)
    fill.learn(known(), fill.due(lambda _: True))
    fill(changing(T, 1))
    assert not meet(fill, changing(T, 1), changing(T, 2))


def test_new_databases_and_tables_become_known_and_old_ones_unknown() -> None:
    fill = ChangedKeys(known(databases="d"))
    assert meet(fill, changing(PARENT, 1), changing(PARENT, 2))
    fill(statement("p", b"CREATE DATABASE p", 5))
    fill.learn(known(), fill.due(lambda _: True))
    fill(changing(PARENT, 1))
    assert not meet(fill, changing(PARENT, 1), changing(PARENT, 2))
    fill(statement("p", b"DROP DATABASE p", 6))
    fill.learn(known(databases="d"), fill.due(lambda _: True))
    fill(changing(PARENT, 1))
    assert meet(fill, changing(PARENT, 1), changing(PARENT, 2))


def test_a_definition_may_join_databases() -> None:
    fill = ChangedKeys(known())
    text = b"ALTER TABLE child ADD FOREIGN KEY (id) REFERENCES `p` . parent (id)"
    parent = fill(changing(PARENT, 1))
    definition = fill(statement("c", text, 5))
    assert may_conflict(parent.keys, definition.keys)
    assert meet(fill, changing(CHILD, 1), changing(PARENT, 2))
    due = fill.due(lambda _: True)
    assert due == {"c": 5, "p": 5}
    fill.learn(known(REFERS), due)
    last = fill(changing(PARENT, 7))
    assert may_conflict(last.keys, fill(changing(CHILD, 8)).keys)
    assert not meet(fill, changing(PARENT, 7), changing(CHILD, 8))
    assert meet(fill, changing(PARENT, 8), changing(CHILD, 8))
    # And what it has joined goes with the definitions of any of them.
    fill(statement("p", b"ALTER TABLE parent COMMENT 'x'", 6))
    assert fill.due(lambda _: True) == {"c": 6, "p": 6}
    fill.learn(known(), {"c": 6, "p": 6})
    assert fill(changing(PARENT, 1)).keys.wholes
    assert fill(changing(CHILD, 1)).keys.wholes
    assert not meet(fill, changing(PARENT, 8), changing(CHILD, 8))


def test_a_definition_of_unknown_databases_is_one_of_all() -> None:
    fill = ChangedKeys(known())
    fill(replace(statement("d", b"ALTER TABLE t ADD x INT", 5), alone=True))
    assert fill.due(lambda _: True) == dict.fromkeys("dcpe", 5)
    assert meet(fill, changing(T, 1), changing(PARENT, 1))


def test_a_temporary_table_defines_nothing() -> None:
    fill = ChangedKeys(known())
    use = TemporaryUse((1, 7), frozenset(), frozenset(), uses=False, only=True)
    made = statement("d", b"CREATE TEMPORARY TABLE x (id INT)", 5)
    assert meet(fill, replace(made, uses_temporary=use, kind=GroupKind.DDL), changing(T, 1))
    assert not fill.due(lambda _: True)
