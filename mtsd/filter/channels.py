"""Which databases a channel's rules reach, and whether two channels keep apart by them.

Two channels from one source to one target do if no database of the source, and none of the target,
can be reached by both. A database is the smallest part, because definitions, foreign keys and the
order of statements do not stop at a table.
"""

from collections.abc import Iterator

from mtsd.filter.filter import Filter
from mtsd.filter.rules import Rules
from mtsd.filter.wildcards import escaped, literal, overlap
from mtsd.model.names import folded


def meeting(one: Rules, other: Rules, *, fold_case: bool = False) -> str | None:
    """Return a database, or a pattern of databases, that both may replicate; None if there is none.

    Names that two patterns have in common count even if a rule of either leaves all of them out.
    """
    first, second = Filter(one, fold_case=fold_case), Filter(other, fold_case=fold_case)
    for name, _ in (*one.rewrite_db, *other.rewrite_db):
        if first.reaches(name) and second.reaches(name):
            return name
    for mine in reached(one):
        for its in reached(other):
            if not _overlap(mine, its, fold_case=fold_case):
                continue
            names = [name for name in map(literal, (mine, its)) if name is not None]
            if not names:
                return mine if mine != "%" else its
            for name in names:
                if _reaches_target(first, name) and _reaches_target(second, name):
                    return name
    return None


def named_databases(rules: Rules) -> tuple[str, ...] | None:
    """Return the target's databases if the rules let only those pass that they name, else None."""
    names: dict[str, None] = {}
    for pattern in reached(rules):
        name = literal(pattern)
        if name is None:
            return None
        names[name] = None
    return tuple(names)


def _overlap(one: str, other: str, *, fold_case: bool) -> bool:
    return overlap(folded(one), folded(other)) if fold_case else overlap(one, other)


def reached(rules: Rules) -> Iterator[str]:
    """Yield patterns that describe every database of the target that the rules may let pass."""
    if rules.do_db:
        yield from map(escaped, rules.do_db)
    elif rules.do_table or rules.wild_do_table:
        yield from (escaped(table.partition(".")[0]) for table in rules.do_table)
        yield from (pattern.partition(".")[0] for pattern in rules.wild_do_table)
    else:
        yield "%"


def _reaches_target(channel: Filter, database: str) -> bool:
    return channel.passes_database(database) and channel.passes_any_in(database) is not False
