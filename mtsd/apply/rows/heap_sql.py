"""Changes of many rows of a table without any index, each in one statement that reads it once.

Each search for a row reads and locks the whole table, and so does one for many. What has to be
found are so many rows, all different: a statement changes nothing unless the target has each of
them, and the number of rows that it finds tells whether it has one of them twice. For example, the
rows (1, 'a') and (2, 'b') are deleted by

    DELETE FROM t WHERE (n,…) IN ((1,X'61'),(2,X'62')) AND 2=(SELECT COUNT(*) FROM
    (SELECT DISTINCT n,… FROM t WHERE (n,…) IN ((1,X'61'),(2,X'62'))) found)

which finds two rows then, and no others. Rows that are the same, and those with values that are not
found in a list, are left to be changed one by one.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mtsd.apply.rows.image_reading import literals_of
from mtsd.apply.tables.table_layout import LayoutColumn, TableLayout
from mtsd.binlog.values.column_format import ColumnFormat
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.row_image import RowImage

_FEWEST: Final = 4
"""Rows for which it is worth to read the table twice."""
_MAX_ROWS: Final = 200
_NOT_IN_LISTS: Final = frozenset({ColumnType.JSON, ColumnType.GEOMETRY, ColumnType.VECTOR})


class HeapChange(NamedTuple):
    """A statement, and the rows that it changes: their places among those given."""

    sql: bytes
    places: Sequence[int]


def heap_changes(
    layout: TableLayout, before: Sequence[RowImage], after: Sequence[RowImage], limit: int
) -> Iterator[HeapChange]:
    """Yield statements of about `limit` bytes, each of which has to find as many rows as it has.

    They delete rows that are `before`, or update them to what is `after`, if there is any. What is
    in none of them is to be changed by itself.
    """
    if not all(map(_may_be_listed, layout.columns, layout.formats)):
        return
    alike: dict[tuple[int, ...], list[int]] = {}
    counts: dict[RowImage, int] = {}
    for image in before:
        counts[image] = counts.get(image, 0) + 1
    for place, image in enumerate(before):
        pairs = zip(image.columns, image.values, strict=True)
        given = tuple(index for index, value in pairs if value is not None)
        if given and counts[image] == 1:
            alike.setdefault(given, []).append(place)
    for given, places in alike.items():
        run: list[int] = []
        size = 0
        for place in places:
            images = before[place], after[place] if after else before[place]
            length = sum(len(each) for image in images for each in literals_of(image))
            if size + length > limit or len(run) >= _MAX_ROWS:
                if len(run) >= _FEWEST:
                    yield _statement(layout, given, before, after, run)
                run, size = [], 0
            run.append(place)
            size += length
        if len(run) >= _FEWEST:
            yield _statement(layout, given, before, after, run)


def _may_be_listed(column: LayoutColumn, format_: ColumnFormat) -> bool:
    return (
        column.compares.before.endswith(b"=")
        and not (column.compares.after or column.zoned or column.hidden or column.json_as_text)
        and format_.type not in _NOT_IN_LISTS
    )


def _statement(
    layout: TableLayout,
    given: tuple[int, ...],
    before: Sequence[RowImage],
    after: Sequence[RowImage],
    places: Sequence[int],
) -> HeapChange:
    """Return the statement for rows in which the same columns are `given`, and others are NULL."""
    compared = [_compared(layout, index) for index in given]
    rows = [_found_by(layout, before[place]) for place in places]
    nulls = [
        b" AND %b IS NULL" % layout.columns[index].name
        for index in before[places[0]].columns
        if index not in given
    ]
    listed = b",".join([b"(%b)" % b",".join(row) for row in rows])
    found = b"(%b) IN (%b)%b" % (b",".join(compared), listed, b"".join(nulls))
    named = b",".join([b"%b AS k%d" % (each, at) for at, each in enumerate(compared)])
    all_there = b"%d=(SELECT COUNT(*) FROM (SELECT DISTINCT %b FROM %b WHERE %b) found)" % (
        len(places), named, layout.name, found,
    )  # fmt: skip
    if not after:
        sql = b"DELETE FROM %b WHERE %b AND %b" % (layout.name, found, all_there)
        return HeapChange(sql, places)
    written = after[places[0]].columns
    sets = [layout.formats[index].type is ColumnType.SET for index in written]
    new: list[bytes] = []
    for row, place in zip(rows, places, strict=True):
        values = [*row, *map(_new, literals_of(after[place]), sets)]
        if new:
            new.append(b"SELECT " + b",".join(values))
            continue
        names = [b"k%d" % at for at in range(len(given))]
        names += [b"n%d" % at for at in range(len(written))]
        pairs = zip(values, names, strict=True)
        new.append(b"SELECT " + b",".join([b"%b AS %b" % pair for pair in pairs]))
    same = b" AND ".join([b"%b=new.k%d" % (each, at) for at, each in enumerate(compared)])
    changes = b",".join(
        [b"t.%b=new.n%d" % (layout.columns[index].name, at) for at, index in enumerate(written)]
    )
    sql = b"UPDATE %b t JOIN (%b) new ON %b%b SET %b WHERE %b" % (
        layout.name, b" UNION ALL ".join(new), same, b"".join(nulls), changes, all_there,
    )  # fmt: skip
    return HeapChange(sql, places)


def _compared(layout: TableLayout, index: int) -> bytes:
    """Return what of a column is equal to a literal, also in a list."""
    if layout.formats[index].type is ColumnType.ENUM:
        return layout.columns[index].name + b"+0"
    return layout.columns[index].compares.before[:-1]


def _found_by(layout: TableLayout, image: RowImage) -> list[bytes]:
    """Return the literals of the values that are not NULL, as they are compared."""
    found: list[bytes] = []
    for index, value in zip(image.columns, image.values, strict=True):
        if isinstance(value, bytes):
            bare = layout.columns[index].compares.bare
            found.append(value.rpartition(b" ")[2] if bare else value)
    return found


def _new(literal: bytes, is_set: bool) -> bytes:
    """Return a literal as it stands in the list of new values.

    Numbers of a column of a UNION that do not have the same sign are decimals there, of which a SET
    of 64 members would lose some.
    """
    return b"CAST(%b AS UNSIGNED)" % literal if is_set else literal
