"""What is known of a table of the target: all questions about its rows are functions of it.

`mtsd.apply.tables.facts_reading` reads it, `mtsd.apply.tables.known_tables` remembers it for the
whole daemon.
"""

from dataclasses import dataclass

Name = tuple[str, str]
"""Database and table."""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column; `type` is its type's first word, in lower case.

    `generated` is the expression that it is generated from, "" if it is not; `stored`, if that is
    stored. `computes_default`: its default is an expression that may depend on the session.
    `character_set` is that of a text, or "" if it is not known.
    """

    name: str
    type: str
    generated: str = ""
    stored: bool = False
    invisible: bool = False
    computes_default: bool = False
    unsigned: bool = False
    character_set: str = ""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table of the target.

    `engine` is in lower case. `checks`, `key_parts` and `partitioning` are expressions: of CHECK
    constraints, of functional keys, and of what the table is partitioned by. `keyed` are the
    columns that its keys and foreign keys name. It `is_referred` to if a foreign key leads here,
    which only a MySQL is asked for. `reached` are the tables that cascades of foreign keys lead to
    from here, without their own `reached`.
    """

    name: Name
    engine: str
    columns: tuple[ColumnFacts, ...]
    has_primary_key: bool = False
    checks: tuple[str, ...] = ()
    key_parts: tuple[str, ...] = ()
    partitioning: tuple[str, ...] = ()
    versioned: bool = False
    keyed: frozenset[str] = frozenset()
    has_foreign_key: bool = False
    is_referred: bool = False
    definition: bytes = b""
    """What tells its definition from another one: the same for the same columns, keys, options."""
    reached: tuple["TableFacts", ...] = ()

    @property
    def has_generated_key(self) -> bool:
        """Whether the server has added its primary key, which is invisible."""
        first = self.columns[0] if self.columns else None
        return first is not None and first.name == "my_row_id" and first.invisible

    def __str__(self) -> str:
        return ".".join(self.name)
