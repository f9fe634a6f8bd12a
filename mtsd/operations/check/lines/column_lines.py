"""Lines that compare the columns of tables that are on both servers.

Row events identify columns by position, and assume that the target's equal the source's. What the
target refuses stops the replica; what it misinterprets changes the data without an error.
"""

from collections.abc import Callable, Iterator, Sequence

from mtsd.apply.tables.column_fit import NON_LOSSY, Fit, fit, fit_as_sql, members
from mtsd.apply.tables.misread_columns import reads_alike
from mtsd.apply.tables.table_columns import (
    ALTER,
    TableColumn,
    allowed_conversions,
    remedy,
    without_generated_key,
)
from mtsd.operations.check.facts import ServerFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line, listed
from mtsd.operations.check.lines.server_lines import counted

Pair = tuple[TableColumn, TableColumn]


def column_lines(
    source: ServerFacts, target: ServerFacts, *, as_sql: bool = False
) -> Iterator[Line]:
    """Yield the lines about columns; `as_sql` is whether rows are applied as SQL statements."""
    allowed = frozenset({NON_LOSSY}) if as_sql else allowed_conversions(target.variables)
    refused: list[str] = []
    needed: set[Fit] = set()
    cut: list[str] = []
    misread: list[str] = []
    moved: list[str] = []
    fewer: list[str] = []
    compared = 0
    for table, before in source.columns.items():
        after = without_generated_key(
            target.columns.get(table, ()), in_events=before[0].generated_key
        )
        if not after:
            continue
        compared += 1
        if len(after) < len(before):
            fewer.append(table)
        for pair in zip(before, after, strict=False):
            misfit = _fit(pair, as_sql=as_sql)
            if not misfit.allowed(allowed):
                needed.add(misfit)
                refused.append(_named(table, pair, lambda column: column.text))
            elif misfit is Fit.LOSSY:
                cut.append(_named(table, pair, lambda column: column.text))
            elif _is_misread(pair, as_sql=as_sql):
                misread.append(_named(table, pair, _meaning))
            elif pair[0].name.lower() != pair[1].name.lower():
                moved.append(_named(table, pair, lambda column: column.name))
    if refused:
        yield Kind.COLUMNS_REFUSED.line(
            count=counted(len(refused), "column"),
            columns=listed(refused),
            remedy=ALTER if as_sql else remedy(needed, target.variables),
        )
    for kind, columns in (
        (Kind.COLUMNS_CUT, cut), (Kind.COLUMNS_MISREAD, misread), (Kind.COLUMNS_MOVED, moved),
    ):  # fmt: skip
        if columns:
            yield kind.line(count=counted(len(columns), "column"), columns=listed(columns))
    if fewer:
        yield Kind.COLUMNS_FEWER.line(count=counted(len(fewer), "table"), tables=listed(fewer))
    if compared and not (refused or cut or misread or moved or fewer):
        yield Kind.COLUMNS.line(count=counted(compared, "table"))


def zone_lines(source: ServerFacts, target: ServerFacts, *, in_utc: bool = False) -> Iterator[Line]:
    """Yield the line about generated columns that depend on the session's time zone.

    `in_utc`: the rows are written in UTC, whatever that was on the source.
    """
    zones = source.variables.get("time_zone"), target.variables.get("time_zone")
    if not in_utc and zones[0] == zones[1]:
        return
    differing = [
        f"{table}.{name}"
        for table in source.columns
        for name, expression in target.expressions.get(table, {}).items()
        if any(
            column.text.lower().startswith("timestamp") and f"`{column.name}`" in expression
            for column in target.columns.get(table, ())
        )
    ]
    if not differing:
        return
    count, columns = counted(len(differing), "column"), listed(differing)
    if in_utc:
        yield Kind.COLUMNS_BY_ZONE.line(count=count, columns=columns)
    else:
        yield Kind.COLUMNS_BY_DEFAULT_ZONE.line(
            count=count, columns=columns, source=zones[0], target=zones[1]
        )


def _fit(pair: Pair, *, as_sql: bool) -> Fit:
    before, after = (column.shape for column in pair)
    if before is None or after is None:
        # An unknown type is left to the servers.
        return Fit.EXACT
    return fit_as_sql(before, after) if as_sql else fit(before, after)


def _is_misread(pair: Pair, *, as_sql: bool) -> bool:
    """Return whether the target reads the column's bytes as other values than the source.

    SQL has the values themselves, except for the numbers of an ENUM's members.
    """
    before, after = pair
    if as_sql:
        return _has_other_members(before, after)
    if _unsigned(before) != _unsigned(after):
        return True
    if not reads_alike(*(column.collation.partition("_")[0] for column in pair)):
        return True
    return _has_other_members(before, after)


def _has_other_members(before: TableColumn, after: TableColumn) -> bool:
    if not before.text.startswith(("enum(", "set(")):
        return False
    values: Sequence[str] = members(before.text)
    return values != members(after.text)[: len(values)]


def _unsigned(column: TableColumn) -> bool:
    return "unsigned" in column.text


def _meaning(column: TableColumn) -> str:
    return f"{column.text} {column.collation}".rstrip()


def _named(table: str, pair: Pair, described: Callable[[TableColumn], str]) -> str:
    before, after = pair
    return f"{table}.{before.name} ({described(before)}; there {described(after)})"
