"""Finds a place in a log by what was executed before it, or by a time.

The beginnings of files show in which one it is, and only that one is read:

    file            executed before it   looked for: what follows 1-25
    binlog.000001
    binlog.000002   1-10
    binlog.000003   1-20                 begins here, is read up to the first group that is not
    binlog.000004   1-30                 in 1-25
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from mtsd.binlog.files.file_order import FileBeginning, file_beginning
from mtsd.binlog.files.range_parts import GroupPart
from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail, whole_file
from mtsd.model.gtid import GtidSet
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.logs.failure import one_line
from mtsd.spark.logs.logs import FilesError, Logs, name_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)


def place_after_gtids(logs: Logs, executed: GtidSet) -> Position:
    """Return where the first group begins that is not among those executed, or the log's end.

    Others that were executed may follow it. Raises FilesError if the log does not reach back far
    enough, or has not got all of them.
    """
    passed = GtidSet()

    def is_before(beginning: FileBeginning) -> bool:
        nonlocal passed
        if beginning.previous is None or not beginning.previous.issubset(executed):
            return False
        passed = beginning.previous.copy()
        return True

    def is_it(part: GroupPart) -> bool:
        if part.gtid is None or part.gtid not in executed:
            return True
        passed.advance(part.gtid)
        return False

    found = _first(logs, is_before, is_it)
    if found is not None and executed.minus(passed):
        missing = executed.minus(_executed(logs))
        if missing:
            raise FilesError(
                f"the log does not have {_shortened(missing)}, after which a read is to begin: they"
                " are another server's, or a replica's that has not got them yet"
            )
    if found is None:
        raise FilesError(
            "the oldest binary log begins with transactions that follow others than those of"
            f" {_shortened(executed)}: what comes between was purged. Begin with a new copy of the"
            " table, and a new checkpoint"
        )
    return found


def place_at_time(logs: Logs, time: datetime) -> Position:
    """Return where the first group begins that was committed then or later, or the log's end.

    Raises FilesError if the log does not reach back to that time.
    """
    seconds = (time - _EPOCH) // _SECOND
    microseconds = (time - _EPOCH) // _MICROSECOND

    def is_it(part: GroupPart) -> bool:
        return part.commit_time >= microseconds

    # A file tells in which second it was begun; the one before it may have groups of that second.
    found = _first(logs, lambda beginning: beginning.time < seconds, is_it)
    if found is None:
        found = _first(logs, lambda beginning: beginning.time <= seconds, is_it)
    if found is None:
        raise FilesError(
            f"option 'start': the oldest binary log was begun after {time}; earliest is what there"
            " is"
        )
    return found


def _first(
    logs: Logs, is_before: Callable[[FileBeginning], bool], is_it: Callable[[GroupPart], bool]
) -> Position | None:
    """Return the first group like this, starting with the newest file that begins before it."""
    files = logs.files()
    for number in reversed(range(len(files))):
        file, size = files[number]
        with one_line(file), logs.opened(whole_file(file, size)) as contents:
            if is_before(file_beginning(contents, name_of(file))):
                break
    else:
        return None
    end = Position("", 0)
    for file, size in files[number:]:
        name = name_of(file)
        bounds = ByteRange(file, FIRST_EVENT, size, size, tail=Tail.GROWING)
        with one_line(file), logs.opened(bounds) as contents:
            reader = RangeReader(contents, bounds, name)
            for part in reader.parts():
                if is_it(part):
                    return Position(name, part.begin)
            end = Position(name, reader.reached or FIRST_EVENT)
    return end


def _executed(logs: Logs) -> GtidSet:
    """Return what was executed before the end of a log, whose last file is read for that."""
    file, size = logs.files()[-1]
    name = name_of(file)
    known = logs.executed_at(Position(name, size))
    if known:
        return GtidSet.parse(known)
    bounds = ByteRange(file, FIRST_EVENT, size, size, tail=Tail.GROWING)
    with one_line(file), logs.opened(bounds) as contents:
        executed = file_beginning(contents, name).previous or GtidSet()
        for part in RangeReader(contents, bounds, name).parts():
            if part.gtid is not None:
                executed.advance(part.gtid)
    return executed


def _shortened(executed: GtidSet) -> str:
    text = str(executed)
    return text if len(text) <= 200 else f"{text[:200]}…"
