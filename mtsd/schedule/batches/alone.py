"""Which groups run alone: after everything before them, and before everything after them."""

from dataclasses import dataclass

from mtsd.model.group import Group, GroupKind
from mtsd.model.step import Rows
from mtsd.schedule.batches.combining import writes_system_tables

_DDL = frozenset({GroupKind.DDL, GroupKind.CREATE_SELECT})
_MAY_HOLD_STATEMENTS = frozenset({GroupKind.NON_TRANSACTIONAL, GroupKind.XA_PREPARE})


@dataclass(frozen=True, slots=True)
class AloneRule:
    """Groups whose databases do not reveal everything that they depend on.

    Always those that say so themselves, and definitions of accounts, which list the database
    `mysql`: views, triggers and routines of any database run as one of them. With `ddl` all DDL,
    including `CREATE TABLE … SELECT`; otherwise that in databases of `ddl_in`, which foreign keys
    join to others: until one is dropped, a change in another database may cascade, or be refused.
    With `statements` all statement-based DML, which may read databases that it does not name. With
    `all_but_rows` everything that is not a transaction of rows.
    """

    ddl: bool = False
    ddl_in: frozenset[str] = frozenset()
    statements: bool = False
    all_but_rows: bool = False

    def applies_to(self, group: Group) -> bool:
        """Return whether the group runs alone."""
        if group.alone:
            return True
        kind = group.kind
        if self.all_but_rows and kind is not GroupKind.ROWS:
            return True
        if kind in _DDL and (
            self.ddl or writes_system_tables(group) or not self.ddl_in.isdisjoint(group.databases)
        ):
            return True
        if not self.statements:
            return False
        return kind is GroupKind.STATEMENTS or (
            kind in _MAY_HOLD_STATEMENTS and any(not isinstance(step, Rows) for step in group.steps)
        )


BY_THEMSELVES = AloneRule()
"""Only groups that say so themselves."""
