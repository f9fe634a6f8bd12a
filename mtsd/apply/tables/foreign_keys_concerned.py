"""Columns by which an UPDATE shows that it concerns no foreign key.

A foreign key needs a key on its columns, in the table that it is of and in the one that it leads
to. So an UPDATE that leaves the columns of all keys as they are breaks no foreign key, and none
cascades.
"""

from mtsd.apply.tables.facts import TableFacts


def keyed_columns(facts: TableFacts, logged: int) -> tuple[int, ...]:
    """Return the columns of a table's keys, by their index among those that the source has logged.

    None are returned if no foreign key concerns the table. Nor are any if rows do not show all of
    them, as those that are generated, or if the table has no primary key: of several changes of a
    row in one event, a server then may find only the first.
    """
    is_concerned = facts.has_foreign_key or facts.is_referred
    if not is_concerned or not facts.has_primary_key or facts.key_parts:
        return ()
    if len(facts.columns) != logged:
        return ()
    keyed = [at for at, column in enumerate(facts.columns) if column.name in facts.keyed]
    if any(facts.columns[at].generated for at in keyed):
        return ()
    return tuple(keyed)
