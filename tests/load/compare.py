"""Two servers side by side: everything that users have made in them, and every row.

Nothing may change on either side meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final

from tests.load.contents import Contents, Table, connect, contents
from tests.load.journal import doubles
from tests.servers.mysqld import Server

__all__ = ["checksums", "differences", "doubles"]

EXAMPLES: Final = 3
"""How many of the rows that only one side has are shown, a side and table."""
SHOWN: Final = 160
"""How many characters of such a row are shown."""
SEARCHED: Final = 1_000_000
"""Examples are looked for in tables of no more rows than this."""


def differences(
    source: Server,
    target: Server,
    ignore_schemas: Sequence[str] = ("mtsd",),
    *,
    users: bool = False,
) -> list[str]:
    """Return a line for each difference between the two servers; none: they are equal.

    Compared are databases, tables, views, triggers, routines, events, with `users` also users
    and what they are granted, and all rows. Not compared are AUTO_INCREMENT counters. An event
    enabled on both sides is a difference, because it would happen twice.
    """
    with ThreadPoolExecutor(2) as both:
        ours, theirs = both.map(
            lambda server: contents(server, ignore_schemas, users=users), (source, target)
        )
    lines = [*_definitions(ours, theirs), *_events(ours, theirs)]
    for name in sorted(ours.checksums.keys() & theirs.checksums.keys()):
        if ours.checksums[name] == theirs.checksums[name]:
            continue
        ours_rows, theirs_rows = ours.checksums[name].rows, theirs.checksums[name].rows
        if ours.tables[name] == theirs.tables[name]:
            lines.append(
                f"table {name}: its {ours_rows} rows differ"
                if ours_rows == theirs_rows
                else f"table {name}: {ours_rows} rows at the source, {theirs_rows} at the target"
            )
            if max(ours_rows, theirs_rows) <= SEARCHED:
                lines += _examples(source, target, ours.tables[name])
        elif ours_rows != theirs_rows:
            lines.append(
                f"table {name}: {ours_rows} rows at the source, {theirs_rows} at the target"
            )
    return lines


def checksums(server: Server, ignore_schemas: Sequence[str] = ("mtsd",)) -> dict[str, str]:
    """Return "N rows HEX" for each table, by "schema.table"."""
    held = contents(server, ignore_schemas)
    return {name: str(checksum) for name, checksum in held.checksums.items()}


def _definitions(ours: Contents, theirs: Contents) -> Iterable[str]:
    for name in sorted(ours.definitions.keys() | theirs.definitions.keys()):
        here, there = ours.definitions.get(name), theirs.definitions.get(name)
        if there is None:
            yield f"{name}: missing at the target"
        elif here is None:
            yield f"{name}: at the target only"
        elif here != there:
            here_lines, there_lines = _lines(here), _lines(there)
            only_here = [line for line in here_lines if line not in there_lines]
            only_there = [line for line in there_lines if line not in here_lines]
            if not only_here and not only_there:
                only_here, only_there = here_lines, there_lines
            yield (
                f"{name}: {', '.join(only_here) or 'nothing more'} at the source,"
                f" {', '.join(only_there) or 'nothing more'} at the target"
            )


def _lines(definition: str) -> list[str]:
    return [line.strip().rstrip(",") for line in definition.splitlines()]


def _events(ours: Contents, theirs: Contents) -> Iterable[str]:
    for name in sorted(ours.events.keys() & theirs.events.keys()):
        here, there = ours.events[name], theirs.events[name]
        if here == there == "ENABLED":
            yield f"event {name}: enabled at the source and at the target, so it happens twice"
        elif there not in {here, "REPLICA_SIDE_DISABLED"}:
            yield f"event {name}: {here} at the source, {there} at the target"


def _examples(source: Server, target: Server, table: Table) -> Iterable[str]:
    """Yield some of the rows that only one of the sides has, or has more often."""
    counters: list[Counter[int]] = []
    for server in (source, target):
        with closing(connect(server)) as client, client.cursor() as cursor:
            cursor.execute(f"SELECT {table.slice} FROM {table.quoted}")
            counters.append(Counter(int(slice_) for (slice_,) in cursor))
    ours, theirs = counters
    for server, only, where in (
        (source, ours - theirs, "source"),
        (target, theirs - ours, "target"),
    ):
        if not only:
            continue
        wanted = ", ".join(str(number) for number in list(only)[:EXAMPLES])
        with closing(connect(server)) as client, client.cursor() as cursor:
            cursor.execute(
                f"SELECT {table.slice} h, LEFT({table.row}, {SHOWN}), COUNT(*)"
                f" FROM {table.quoted} GROUP BY 1, 2 HAVING h IN ({wanted})"
            )
            for _, text, count in cursor:
                yield f"  {count} x at the {where}: {text}"
