"""Updates of rows with a key: many in one statement, which names only the columns that they change.

Rows that change the same columns of a table go together. For example, `(1,a,x) > (1,b,x)` and
`(2,a,y) > (2,c,y)` are

    UPDATE t SET v=CASE WHEN k=1 THEN 'b' WHEN k=2 THEN 'c' END WHERE (k) IN ((1),(2))

What all of them change to the same value needs no CASE. Nobody can tell such a statement from one
for each row: none of them changes a value that another one is found by, or that has to be unique.
So where a row changes a key, or what is to be unique is not known, or a value is none that a CASE
leaves as it is, it has a statement by itself, after those before it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mtsd.apply.rows.image_reading import literals_of
from mtsd.apply.tables.table_layout import LayoutColumn, TableLayout
from mtsd.binlog.values.column_type import ColumnType
from mtsd.binlog.values.row_image import RowImage

_MAX_ROWS: Final = 100
"""A CASE compares the key of each row with those of the rows before it: more are no faster."""
_NUMBERED: Final = frozenset({ColumnType.ENUM, ColumnType.SET, ColumnType.BIT})


class KeyedUpdate(NamedTuple):
    """The literals of the key that a row is found by, and of what it changes."""

    key: RowImage
    after: RowImage


def are_listed(columns: Sequence[LayoutColumn]) -> bool:
    """Return whether a list finds rows by these columns: see `LayoutColumn.in_rows`."""
    return all(each.in_rows for each in columns) or (len(columns) == 1 and not columns[0].zoned)


class KeyedUpdates:
    """Collects updates of a table by one of its keys."""

    __slots__ = ("_alike", "_fixed", "_joins", "_keys", "_layout", "_limit", "_size")

    def __init__(self, layout: TableLayout, key: Sequence[int], limit: int) -> None:
        """`limit`: about how many bytes a statement may have."""
        self._layout = layout
        self._limit = limit
        self._fixed = frozenset({*key, *(layout.others or ())})
        self._joins = (
            layout.others is not None
            and not layout.cascades
            and are_listed([layout.columns[index] for index in key])
            # What is generated may change without being named.
            and all(layout.columns[index].written for index in self._fixed)
        )
        self._alike: dict[tuple[int, ...], list[KeyedUpdate]] = {}
        """By the columns that they change."""
        self._keys: set[tuple[object, ...]] = set()
        self._size = 0

    def accepts(self, update: KeyedUpdate) -> bool:
        """Return whether an update may be joined with others."""
        columns = update.after.columns
        return (
            self._joins
            and bool(columns)
            and self._fixed.isdisjoint(columns)
            and all(self._layout.columns[index].in_cases for index in columns)
        )

    def add(self, update: KeyedUpdate) -> bool:
        """Collect an update; return False, and do not, if what is there is to be taken before."""
        size = sum(map(len, literals_of(update.after))) + sum(map(len, literals_of(update.key)))
        full = bool(self._keys) and self._size + size > self._limit
        if full or len(self._keys) >= _MAX_ROWS or update.key.values in self._keys:
            return False
        self._keys.add(update.key.values)
        self._size += size
        self._alike.setdefault(update.after.columns, []).append(update)
        return True

    def take(self) -> Iterator[list[KeyedUpdate]]:
        """Yield those that belong together, and forget them."""
        yield from self._alike.values()
        self._alike = {}
        self._keys.clear()
        self._size = 0


def joined_update(
    layout: TableLayout, updates: Sequence[KeyedUpdate], kept: Sequence[bytes]
) -> bytes:
    """Return one statement for updates of the same columns; those that are `kept` stay."""
    key = updates[0].key.columns
    names = [layout.columns[index].name for index in key]
    keys = [literals_of(each.key) for each in updates]
    whens = [
        b" WHEN %b THEN "
        % b" AND ".join([b"%b=%b" % pair for pair in zip(names, values, strict=True)])
        for values in keys
    ]
    values_of = zip(*[literals_of(each.after) for each in updates], strict=True)
    changes: list[bytes] = []
    for index, values in zip(updates[0].after.columns, values_of, strict=True):
        value = values[0]
        if values.count(value) != len(values):
            cases = [b"%b%b" % pair for pair in zip(whens, values, strict=True)]
            value = b"CASE%b END" % b"".join(cases)
            if layout.formats[index].type in _NUMBERED:
                # Numbers of both kinds, with a sign and without, come to decimals.
                value = b"CAST(%b AS UNSIGNED)" % value
        changes.append(b"%b=%b" % (layout.columns[index].name, value))
    changes += [b"%b=%b" % (name, name) for name in kept]
    left = b",".join(names)
    found = b",".join([b"(%b)" % b",".join(values) for values in keys])
    return b"UPDATE %b SET %b WHERE (%b) IN (%b)" % (
        layout.name, b",".join(changes), left, found,
    )  # fmt: skip
