"""The validated options of the format `mtsd_binlog`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from mtsd.catalog.definition import TableDefinition
from mtsd.model.errors import MtsdError
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.spark.arrays.column_arrays import Dates
from mtsd.spark.options import option_values
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
    if not problems:
        found = Options(**values)  # type: ignore[arg-type]
        problems += left_out(found)
        if not problems:
            return found
    raise OptionError("; ".join(problems))


def left_out(options: Options, now: datetime | None = None) -> list[str]:
    """Return which options leave nothing to read together, or none of what one of them names.

    Such a read would have no rows, without an error. `now` is the time, that of the clock unless
    it is given.
    """
    start, end = options.start, options.end
    problems = [] if start is None or end is None else _after_the_end(start, end)
    times = {"since": options.since, "start": options.at_time}
    for name, moment in times.items():
        if moment is None:
            continue
        if moment > (now or datetime.now(UTC)):
            problems.append(
                f"option {name!r} is {moment}, which has not come yet: a time without an offset"
                " is in UTC"
            )
        elif options.until is not None and moment >= options.until:
            problems.append(
                f"options {name!r} and 'until' leave nothing: {moment} is not before"
                f" {options.until}"
            )
    schemas = {schema.lower() for schema in options.schemas}
    problems += [
        f"option 'tables' names {schema}.{table}, which 'schemas' leaves out: give one of the two"
        for schema, table in options.tables
        if schemas and schema.lower() not in schemas
    ]
    return problems


def check_order(start: Position, end: Position) -> None:
    """Raise OptionError if a read would begin after its end."""
    for problem in _after_the_end(start, end):
        raise OptionError(problem)


def _after_the_end(start: Position, end: Position) -> list[str]:
    if _base(start) != _base(end) or start <= end:
        return []
    return [f"options 'start' and 'end' leave nothing: {start} comes after {end}"]


def _base(place: Position) -> str:
    return place.file.rpartition(".")[0]


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
        elif option_values.DATE.match(start):
            values["at_time"] = option_values.time(given)
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
_STARTS: Final = frozenset({"earliest", "latest"})
_KNOWN: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "path": ("path", str),
    "paths": ("several", option_values.paths),
    "shape": ("shape", option_values.shape),
    "table": ("table", option_values.table),
    "columns": ("columns", option_values.columns),
    "start": ("start", option_values.position),
    "end": ("end", option_values.end),
    "max_partition_bytes": ("max_partition_bytes", option_values.size),
    "ddl": ("ddl", str),
    "dates": ("dates", option_values.dates),
    "max_bytes": ("max_bytes", option_values.size),
    "schemas": ("schemas", option_values.schemas),
    "tables": ("tables", option_values.tables),
    "ops": ("ops", option_values.columns),
    "since": ("since", option_values.time),
    "until": ("until", option_values.time),
    "unseen_changes": ("unseen_changes", option_values.one_of("error", SKIP)),
    "evolve": ("evolve", option_values.one_of("error", UNION)),
    "absent": ("absent", option_values.one_of("error", NULL)),
}
"""For each option, its field and a function that parses its value and raises ValueError."""
