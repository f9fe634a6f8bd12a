"""Lines about tables of MariaDB that the daemon refuses: their rows would become others."""

from collections.abc import Iterable, Iterator

from mtsd.apply.tables.misread_tables import does_not_generate, turns_into_history
from mtsd.operations.check.facts import ServerFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line, listed
from mtsd.operations.check.lines.server_lines import counted
from mtsd.wire.family import SERVERS


def misread_lines(source: ServerFacts, target: ServerFacts, *, as_sql: bool) -> Iterator[Line]:
    """Yield the lines; `as_sql` is whether rows are applied as SQL statements."""
    # What the target does not have yet comes with the source's definition.
    there = {str(table) for table in target.tables}
    new = {str(table) for table in source.tables} - there
    versioned = {*target.versioned, *new.intersection(source.versioned)}
    generated = {*target.generated, *new.intersection(source.generated)}
    if as_sql:
        if all(SERVERS[server.flavour].has_history for server in (source, target)):
            yield from _line(Kind.VERSIONED_AS_SQL, versioned)
        return
    if turns_into_history(source.server, target.server):
        yield from _line(Kind.VERSIONED, versioned)
    if does_not_generate(source.server, target.server):
        yield from _line(Kind.NOT_GENERATED, generated)


def _line(kind: Kind, tables: Iterable[str]) -> Iterator[Line]:
    names = sorted(tables)
    if names:
        yield kind.line(count=counted(len(names), "table"), tables=listed(names))
