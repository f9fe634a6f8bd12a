"""The validated options of the format `mtsd_binlog`."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from mtsd.catalog.definition import TableDefinition
from mtsd.model.errors import MtsdError
from mtsd.model.gtid import GtidSet
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.arrays.column_arrays import Dates
from mtsd.spark.options.live_options import LIVE, LiveOptions, parse_live

MAX_PARTITION_BYTES: Final = 64 << 20
MAX_BYTES: Final = 1 << 30
NULL: Final = "null"
"""Of the option `absent`."""
UNION: Final = "union"
"""Of the option `evolve`."""
SKIP: Final = "skip"
"""Of the option `unseen_changes`."""


class OptionError(MtsdError):
    """An option is unknown, missing or wrong."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to read, and how to split it.

    `path` is a file, a folder, a pattern, or an address that fsspec opens, or there are `several`
    of them; it is empty for a `live` source. `columns` are the requested ones in this order, empty
    for all. `table` is (database, table) for the shape `table`. Only groups that begin at or after
    `start` and end at or before `end` are read. Instead of `start`, there may be `after_gtids`,
    which are left out, or `at_time`, a commit time. A stream begins at the end if `latest` is set,
    and reads `max_bytes` per batch. `schemas`, `tables`, `ops`, `since` and `until` filter rows if
    they are not empty; the last two are commit times, and `until` is exclusive. `ddl` contains
    CREATE TABLE statements for tables whose columns the binary log does not name; `loaded` is the
    live source's definition of `table`.
    `unseen_changes`: changes that are not in row events are an error, or passed over. `evolve`:
    other columns than those of the first rows are an error, or united with them. `absent`: values
    that were not logged (binlog_row_image) are an error, or null and named in `_absent`.
    """

    path: str = ""
    shape: str = "events"
    table: tuple[str, str] | None = None
    columns: tuple[str, ...] = ()
    start: Position | None = None
    end: Position | None = None
    max_partition_bytes: int = MAX_PARTITION_BYTES
    ddl: str = ""
    dates: Dates = Dates.STRICT
    latest: bool = False
    after_gtids: GtidSet | None = None
    at_time: datetime | None = None
    max_bytes: int = MAX_BYTES
    schemas: tuple[str, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    ops: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    unseen_changes: str = "error"
    evolve: str = "error"
    absent: str = "error"
    live: LiveOptions | None = None
    loaded: TableDefinition | None = None
    several: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths."""
        return self.several or (self.path,)


SHAPES: Final = ("events", "groups", "changes", "table")
_ONLY_WITH: Final = {
    "schemas": ("changes",),
    "tables": ("changes",),
    "ops": ("changes", "table"),
    "since": ("groups", "changes", "table"),
    "until": ("groups", "changes", "table"),
    "ddl": ("changes", "table"),
    "dates": ("table",),
    "unseen_changes": ("changes", "table"),
    "evolve": ("table",),
    "absent": ("table",),
}
_OPS: Final = {
    "changes": ("insert", "update", "delete", "truncate", "ddl"),
    "table": ("insert", "update_preimage", "update_postimage", "delete", "truncate"),
}


def parse_options(given: Mapping[str, str]) -> Options:
    """Return the options that were given to Spark by name; case does not matter.

    Raises OptionError, which lists everything that is wrong.
    """
    if not given:
        raise OptionError(
            "option 'path' is missing, as all others are: Spark does not pass those of a table in"
            " its catalog (CREATE TABLE … USING mtsd_binlog): give them as in SELECT … FROM … WITH"
            " (path = …), or use CREATE TEMPORARY VIEW … USING"
        )
    options: dict[str, str] = {}
    problems: list[str] = []
    known = {*_KNOWN, *LIVE}
    for name, value in given.items():
        lower = name.lower()
        own = _ALIASES.get(lower, lower)
        if own in options and own != lower:
            problems.append(f"options {own!r} and {name!r} are the same: give one of them")
        elif own in known:
            options[own] = value
        elif not _is_of_spark(lower):
            problems.append(f"option {name!r} is unknown{_nearest(lower, known)}")
    live, wrong = parse_live(options)
    problems += wrong
    values: dict[str, object] = {"live": live}
    problems += _take_start(options, values)
    for name, (field, parse) in _KNOWN.items():
        if name in options:
            try:
                values[field] = parse(options[name].strip())
            except ValueError as error:
                problems.append(f"option {name!r} is {options[name]!r}: {error}")
    is_live = bool(set(options) & set(LIVE))
    has_path = bool(options.get("path") or options.get("paths"))
    if not has_path and not is_live:
        problems.append(
            "option 'path' is missing: a binary log file, a folder of them or a pattern; or 'host'"
            " of a live source"
        )
    elif has_path and is_live:
        problems.append("there are both 'path' and options of a live source")
    if not problems:
        is_table = values.get("shape") == "table"
        if is_table and "table" not in values:
            problems.append("shape 'table' needs the option 'table': \"database.table\"")
        elif "table" in values and not is_table:
            problems.append("option 'table' belongs to shape 'table'")
        problems += _misplaced(values)
    if problems:
        raise OptionError("; ".join(problems))
    return Options(**values)  # type: ignore[arg-type]


def _take_start(found: dict[str, str], values: dict[str, object]) -> list[str]:
    """Take a `start` that is not a position; return what is wrong with it."""
    given = found.get("start", "").strip()
    start = given.lower()
    try:
        if start in _STARTS:
            values["latest"] = start == "latest"
        elif start.startswith(_GTIDS):
            # mysqldump writes the set as an addition, which begins with a +.
            values["after_gtids"] = GtidSet.parse(given[len(_GTIDS) :].strip().removeprefix("+"))
        elif _DATE.match(start):
            values["at_time"] = _time(given)
        else:
            return []
    except ValueError as error:
        return [f"option 'start' is {given!r}: {error}"]
    del found["start"]
    return []


def _is_of_spark(name: str) -> bool:
    """Tell whether Spark gives such an option, besides ours, for a table of its catalog."""
    return name in _OF_SPARK or name.startswith("option.")


def _nearest(name: str, known: Collection[str]) -> str:
    like = get_close_matches(name, [*known, *_ALIASES], n=1)
    if not like:
        return ": docs/spark.md has those that there are"
    return f": did you mean {_ALIASES.get(like[0], like[0])!r}?"


def _misplaced(values: Mapping[str, object]) -> list[str]:
    """Return what is wrong with options that apply only to some shapes."""
    shape = str(values.get("shape", "events"))
    problems = [
        f"option {name!r} belongs to shape {' or '.join(map(repr, shapes))}"
        for name, shapes in _ONLY_WITH.items()
        if name in values and shape not in shapes
    ]
    ops = values.get("ops", ())
    if not problems and isinstance(ops, tuple):
        problems += [
            f"option 'ops': there is no {op!r} in shape {shape!r}: there are {', '.join(known)}"
            for known in [_OPS.get(shape, ())]
            for op in ops
            if op not in known
        ]
    return problems


def _shape(text: str) -> str:
    if text.lower() not in SHAPES:
        raise ValueError(f"it is one of {', '.join(SHAPES)}")
    return text.lower()


def _paths(text: str) -> tuple[str, ...]:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not (isinstance(document, list) and all(isinstance(one, str) and one for one in document)):
        raise ValueError('it is a JSON list of paths, as load(["a", "b"]) makes it')
    return tuple(document)


def _table(text: str) -> tuple[str, str]:
    parts = text.replace("`", "").split(".")
    if len(parts) != 2 or not all(parts):
        raise ValueError('it is "database.table"')
    return parts[0], parts[1]


def _tables(text: str) -> tuple[tuple[str, str], ...]:
    return tuple(_table(name.strip()) for name in text.split(","))


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip().strip("`") for name in text.split(","))
    if not all(names):
        raise ValueError("it is a list of names with commas between them")
    if len(set(names)) < len(names):
        raise ValueError("a name is there twice")
    return names


def _position(text: str) -> Position:
    file, colon, offset = text.rpartition(":")
    if not colon:
        return Position(text, FIRST_EVENT)
    if not offset.isdecimal() or not file:
        raise ValueError("it is earliest, latest, FILE, FILE:POSITION, gtid:SET or a time")
    return Position(file, int(offset))


def _end(text: str) -> Position:
    if ":" not in text:
        raise ValueError("it is FILE:POSITION")
    return _position(text)


_UNITS: Final = {"k": 10, "m": 20, "g": 30}


def _bytes(text: str) -> int:
    digits = text.lower().removesuffix("b")
    shift = _UNITS.get(digits[-1:], 0)
    if shift:
        digits = digits[:-1]
    if not digits.strip().isdecimal() or not int(digits):
        raise ValueError("it is a number of bytes, such as 67108864 or 64m")
    return int(digits) << shift


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("it is a time such as 2026-05-31 12:00:00+00:00") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"it is one of {', '.join(allowed)}")
        return text.lower()

    return parse


def _dates(text: str) -> Dates:
    try:
        return Dates[text.upper()]
    except KeyError:
        raise ValueError(
            f"it is one of {', '.join(dates.name.lower() for dates in Dates)}"
        ) from None


_OF_SPARK: Final = frozenset({
    "external", "is_managed_location", "location", "owner", "provider", "serialization.format",
})  # fmt: skip
_ALIASES: Final = {
    "startingoffsets": "start",
    "endingoffsets": "end",
    "maxbytespertrigger": "max_bytes",
}
"""What Spark's own sources call these options."""
_GTIDS: Final = "gtid:"
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ t]|$)")
_STARTS: Final = frozenset({"earliest", "latest"})
_KNOWN: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "path": ("path", str),
    "paths": ("several", _paths),
    "shape": ("shape", _shape),
    "table": ("table", _table),
    "columns": ("columns", _columns),
    "start": ("start", _position),
    "end": ("end", _end),
    "max_partition_bytes": ("max_partition_bytes", _bytes),
    "ddl": ("ddl", str),
    "dates": ("dates", _dates),
    "max_bytes": ("max_bytes", _bytes),
    "schemas": ("schemas", _columns),
    "tables": ("tables", _tables),
    "ops": ("ops", _columns),
    "since": ("since", _time),
    "until": ("until", _time),
    "unseen_changes": ("unseen_changes", _one_of("error", SKIP)),
    "evolve": ("evolve", _one_of("error", UNION)),
    "absent": ("absent", _one_of("error", NULL)),
}
"""For each option, its field and a function that parses its value and raises ValueError."""
