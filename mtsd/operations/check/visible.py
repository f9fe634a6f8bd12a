"""What the check's user can see of a server: tables that he may not use are not listed."""

from mtsd.operations.check.facts import ServerFacts
from mtsd.operations.check.privileges import HeldPrivileges

_SHOWS_TABLES = (
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER",
    "CREATE VIEW", "SHOW VIEW", "TRIGGER",
)  # fmt: skip


def sees_tables(facts: ServerFacts) -> bool:
    """Return whether the user can see which tables exist."""
    return bool(facts.tables) or HeldPrivileges.of(facts.grants).has(_SHOWS_TABLES)


def sees_position_schema(facts: ServerFacts, schema: str) -> bool:
    """Return whether the user could see the position schema, if there is one."""
    held = HeldPrivileges.of(facts.grants)
    return held.has(_SHOWS_TABLES) or held.has_on(schema, "SELECT")
