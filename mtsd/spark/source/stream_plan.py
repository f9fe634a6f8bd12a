"""Where the next batch of a stream ends, and which bytes lie between two offsets.

An offset is a place between two groups: the end of a group, or byte 4 of a file. All files before
it have been read to their ends.
"""

from collections.abc import Sequence

from mtsd.binlog.files.ranges import ByteRange, Tail, whole_file
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.logs.logs import FilesError, Logs, name_of

Files = Sequence[tuple[str, int]]


def first_offset(logs: Logs, start: Position | None, *, latest: bool) -> Position:
    """Return where a new stream begins: at the end, at `start`, or with the first file."""
    files = logs.files()
    if latest:
        file, size = files[-1]
        span = ByteRange(file, FIRST_EVENT, size, size, tail=Tail.GROWING)
        return Position(name_of(file), logs.last_end(span) or FIRST_EVENT)
    if start is None:
        return Position(name_of(files[0][0]), FIRST_EVENT)
    file, size = (rest := _from(logs, files, start))[0]
    begin = logs.first_begin(file, size, max(FIRST_EVENT, start.offset))
    if begin is None and len(rest) > 1:
        return Position(name_of(rest[1][0]), FIRST_EVENT)
    if begin is None:
        # The next group begins where the last one, or what follows it, has ended.
        begin = logs.last_end(ByteRange(file, FIRST_EVENT, size, size, tail=Tail.GROWING))
    if begin is None or begin < start.offset:
        raise FilesError(
            f"option 'start' is {start}, which is in the middle of a group that is not there as a"
            " whole yet: give the place at which one begins or ends"
        )
    return Position(start.file, begin)


def next_end(logs: Logs, start: Position, most: int | None, stop: Position | None) -> Position:
    """Return the end of the batch after `start`: up to `most` bytes of groups, or a larger group.

    It is never after `stop`; None means no limit. Raises FilesError if what comes next is gone.
    """
    end = start
    left = most
    files = _from(logs, logs.files(), start)
    if len(files) > 1 and not logs.is_begun(*files[-1]):
        # Until its beginning is written, it does not show how the previous file ended.
        files = files[:-1]
    if stop is not None and stop <= start:
        return start
    for number, (file, size) in enumerate(files):
        name = name_of(file)
        if number:
            if stop is not None and stop < Position(name, FIRST_EVENT):
                break
            end = Position(name, FIRST_EVENT)
        begin = end.offset
        is_last = number == len(files) - 1
        tail = Tail.GROWING if is_last else Tail.AS_FLAGGED
        limit = size
        if stop is not None and name == stop.file and stop.offset <= size:
            is_last, limit, tail = True, stop.offset, Tail.GROWING
        span = ByteRange(file, begin, limit, limit, begin, tail)
        if left is not None and limit - begin > left:
            boundary = logs.end_within(span, left)
            if boundary is None and end == start:
                boundary = logs.end_behind(span, left)
                if boundary is None and not is_last:
                    # What is left is a group that a crash cut off, larger than a batch.
                    continue
            return end if boundary is None else Position(name, boundary)
        if is_last:
            boundary = logs.last_end(span)
            return end if boundary is None else Position(name, boundary)
        if left is not None:
            left -= max(0, limit - begin)
    return end


def parts_between(logs: Logs, start: Position, end: Position) -> list[ByteRange]:
    """Return the bytes between two offsets, one range per file; FilesError if some are gone."""
    if start == end:
        return []
    ranges: list[ByteRange] = []
    files = _from(logs, logs.files(), start)
    names = [name_of(file) for file, _ in files]
    if end.file not in names:
        raise logs.missing(end.file)
    last = names.index(end.file)
    for number, (file, size) in enumerate(files[: last + 1]):
        name = name_of(file)
        begin = start.offset if name == start.file else FIRST_EVENT
        if name == end.file:
            if end.offset > max(size, FIRST_EVENT):
                raise shrunk(file, size, end)
            if begin < end.offset:
                ranges.append(ByteRange(file, begin, end.offset, end.offset, begin, Tail.WHOLE))
        else:
            part = ByteRange(file, begin, size, size, begin, following=files[number + 1][0])
            if size < FIRST_EVENT:
                part = whole_file(file, size)
            # Even if nothing is left to read, a task has to check that the file is complete.
            ranges.append(part)
    return ranges


def shrunk(file: str, size: int, place: Position) -> FilesError:
    """Return the error for a file that is now shorter than what has been read."""
    return FilesError(
        f"{file} has {size} bytes, and has been read up to byte {place.offset}: it is another file"
        " now, or its end was lost in a crash"
    )


def _from(logs: Logs, files: Files, start: Position) -> Files:
    """Return the files starting with the one of an offset."""
    for number, (file, size) in enumerate(files):
        if name_of(file) == start.file:
            if start.offset > max(size, FIRST_EVENT):
                raise shrunk(file, size, start)
            return files[number:]
    raise logs.missing(start.file)
