"""Whether a log has the places that `start` and `end` name.

With binlog.000004 to binlog.000006, whose sizes are 900, 700 and 300:

    start = binlog.000003:4       there is no binlog.000003
    start = binlog.000005:701     binlog.000005 has 700 bytes
    end = binlog.000006:400       an error for a read; a stream goes on until the file has so many
    start = binlog.000006:4 and end = binlog.000005:4 leave nothing
"""

from collections.abc import Sequence

from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.logs.logs import name_of
from mtsd.spark.options.options import OptionError, check_order

Files = Sequence[tuple[str, int]]


def check_read(files: Files, start: Position | None, end: Position | None) -> None:
    """Raise OptionError if a read could not begin at `start`, or not end at `end`."""
    sizes = {name_of(file): size for file, size in files}
    for option, place in (("start", start), ("end", end)):
        if place is not None:
            _check(option, place, sizes)
    if start is not None and end is not None:
        check_order(start, end)


def check_stream(files: Files, start: Position | None, end: Position | None) -> None:
    """Raise OptionError as `check_read` does, except for an end that the log may still reach."""
    last = name_of(files[-1][0])
    is_to_come = end is not None and end >= Position(last, FIRST_EVENT)
    check_read(files, start, None if is_to_come else end)


def _check(option: str, place: Position, sizes: dict[str, int]) -> None:
    size = sizes.get(place.file)
    if size is None:
        names = list(sizes)
        there = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        raise OptionError(f"option {option!r}: there is no {place.file}, there is {there}")
    if place.offset > max(size, FIRST_EVENT):
        raise OptionError(f"option {option!r} is {place}, but {place.file} has {size} bytes")
