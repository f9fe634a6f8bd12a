"""Reads the events or groups of one byte range of a binary log file, in parallel with others.

A range needs nothing but the file's format description: it finds its first event on its own
(`mtsd.binlog.files.sync`), and the tables of a group are described inside the group. Its groups
start at the first group boundary that it sees, and stop at the first one that the next range sees.
A single event suffices to recognize a boundary, so both ranges agree on it. If there are GTID
events, this means that a group belongs to the range in which it begins.

Each range reads consecutive events from the first one that it finds to the place where the next
range finds its first one, and it is an error if they do not end exactly there. Because the first
range begins with the file, and the beginning of every other range has been checked by its
predecessor, no range can start at a false event.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mtsd.binlog.bytes.event_type import IN_USE, EventType
from mtsd.binlog.bytes.header import HEADER_SIZE, parse_header
from mtsd.binlog.events.event_reader import EventReader
from mtsd.binlog.events.format_description import FormatDescription, is_of_relay_log
from mtsd.binlog.files.event_batch import EventBatch, event_places, size_of_first
from mtsd.binlog.files.file_beginning import read_description
from mtsd.binlog.files.group_boundaries import ENDS, QUERY, Boundary, boundary_at
from mtsd.binlog.files.range_parts import GroupPart, PlacedEvent, Splits, StretchOfGroups
from mtsd.binlog.files.ranges import ByteRange, Tail
from mtsd.binlog.files.sync import FileContents, first_event
from mtsd.binlog.groups.grouper import Grouper
from mtsd.model.errors import BinlogError, NotSupportedError
from mtsd.model.group import Group, GroupChunk, GroupClosed, GroupOpened, PositionReached
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.model.step import Step

_PIECE: Final = 1 << 20
_PIECE_OF_STRETCHES: Final = 4 << 20
_PIECE_BEHIND: Final = 1 << 18
"""The size of reads past the range's end, where mostly very little is needed."""
_PAYLOAD: Final[int] = EventType.TRANSACTION_PAYLOAD_EVENT.value
_LAST: Final = frozenset({EventType.ROTATE_EVENT.value, EventType.STOP_EVENT.value})
_LOW: Final = 0xFFFFFFFF
_NO_NAME: Final = ""
"""The file's name for event readers, because a renamed file does not match its Rotate event."""


class RangeReader:
    """Reads one range; `name` is the file's name without a folder, for positions.

    Groups of more than `hold_bytes` come in parts. Raises BinlogError if the file is damaged,
    NotSupportedError if it is not a binary log of a source that can be read in place.
    """

    def __init__(
        self,
        contents: FileContents,
        bounds: ByteRange,
        name: str,
        *,
        hold_bytes: int = 8 << 20,
    ) -> None:
        self.contents = contents
        self._bounds = bounds
        self._name = name
        self._hold_bytes = hold_bytes
        self._raw_description = read_description(contents, name)
        reader = self._reader(FIRST_EVENT)
        reader.offset = FIRST_EVENT
        self._read(reader, self._raw_description)
        if reader.description is None:
            raise self.error("the file does not begin with a format description", FIRST_EVENT)
        self.dialect = reader.dialect
        self.mariadb = reader.dialect.tables_of_mariadb
        self.description: FormatDescription = reader.description
        """The format description at the beginning of the file."""
        flags = parse_header(self._raw_description).flags
        if is_of_relay_log(self._raw_description):
            raise NotSupportedError(
                f"{name} is a relay log, whose events have the positions of another server's"
                " binary log: read that one"
            )
        self.in_use = bounds.tail is Tail.GROWING or (
            bounds.tail is Tail.AS_FLAGGED and (bool(flags & IN_USE) or contents.has_more)
        )
        """Whether a server is writing the file or died while doing so: its end may be truncated."""
        self.reached: int | None = None
        """The end of what `parts` has read: right after a group, or after an event outside any."""
        self._checksums = reader.checksums

    def events(self) -> Iterator[PlacedEvent]:
        """Yield the events that begin in the range."""
        start = self._start()
        if start is None:
            return
        reader = self._reader(start)
        for at, batch in self._batches(start):
            if at >= self._bounds.end:
                return
            for raw in batch:
                before = reader.offset
                event = self._read(reader, raw)
                end = before + len(raw)
                yield PlacedEvent(end, event, inner=False)
                if event[4] == _PAYLOAD:
                    try:
                        for inner in reader.inner(event):
                            yield PlacedEvent(end, inner, inner=True)
                    except BinlogError as error:
                        raise self.error(error.message, before) from error

    def parts(self) -> Iterator[GroupPart]:
        """Yield the groups of the range; a partial one at the end of a file in use is ignored."""
        return self._parts(None)

    def stretches(self, splits: Splits[StretchOfGroups]) -> Iterator[GroupPart | StretchOfGroups]:
        """Yield the same groups, in order: those that `splits` finds together, others as parts.

        It is asked only where events end with checksums.
        """
        return self._parts(splits if self._checksums else None)

    def _parts(
        self, splits: Splits[StretchOfGroups] | None
    ) -> Iterator[GroupPart | StretchOfGroups]:
        start = self._start()
        if start is None:
            return
        groups = _Groups(self, start) if start == self._bounds.first else None
        reader = self._reader(start)
        for at, batch in self._batches(start, _PIECE if splits is None else _PIECE_OF_STRETCHES):
            if groups is None:
                if at >= self._bounds.end:
                    return
                count = self._first_boundary(reader, batch)
                if count is None:
                    continue
                begin = at + batch.places[count] - batch.places[0]
                groups = _Groups(self, begin)
                yield from groups.read(batch.within(count), splits)
            elif at < self._bounds.end:
                yield from groups.read(batch, splits)
            else:
                # Past the range, read only to the end of its last group.
                reader = self._reader(at)
                count = self._first_boundary(reader, batch)
                yield from groups.read(batch.within(0, count), None)
                if count is not None:
                    groups.finish(may_be_cut_off=False)
                    return
        if groups is not None:
            groups.finish(may_be_cut_off=self.in_use)
            self.reached = groups.begin

    def first_boundary(self) -> int | None:
        """Return the first place, at or after the range's first byte, where a group begins.

        None if no event shows one, as after a last group of certain kinds.
        """
        start = self._start()
        if start is None or start == self._bounds.first:
            return start
        reader = self._reader(start)
        for at, batch in self._batches(start):
            count = self._first_boundary(reader, batch)
            if count is not None:
                return at + batch.places[count] - batch.places[0]
        return None

    def end_of_group(self, begin: int) -> int | None:
        """Return where the group that begins at `begin` ends; None if it does not end."""
        at = begin
        while self.contents.size - at >= HEADER_SIZE:
            header = parse_header(self.contents.read(at, HEADER_SIZE))
            end = at + max(header.size, HEADER_SIZE)
            if end > self.contents.size or header.type in _LAST:
                return None
            if header.type in ENDS or header.type == _PAYLOAD:
                return end
            if at != begin and header.type in self.dialect.heads:
                return at
            if header.type == QUERY or header.type in self.dialect.compressed:
                raw = self.contents.read(at, end - at)
                event = self._read(self._reader(at), raw)
                if boundary_at(event, self.dialect) is Boundary.AFTER:
                    return end
            at = end
        return None

    def grouper(self, begin: int) -> Grouper:
        """Return a grouper for the events from `begin` on."""
        return Grouper(
            start=Position(_NO_NAME, begin),
            next_number=1,
            checksums=False,
            hold_bytes=self._hold_bytes,
            chunk_bytes=self._hold_bytes,
            description=b"" if begin == FIRST_EVENT else self._raw_description,
        )

    def _start(self) -> int | None:
        """Return where the range's first event begins; None if none begins in it."""
        begin = self._bounds.begin
        if begin <= self._bounds.first:
            return self._bounds.first
        return self._first_event(begin, min(self._bounds.end, self.contents.size))

    def _first_event(self, begin: int, end: int) -> int | None:
        return first_event(
            self.contents,
            begin,
            end,
            checksums=self._checksums,
            unplaced=self.dialect.unplaced,
        )

    def _reader(self, at: int) -> EventReader:
        description = b"" if at == FIRST_EVENT else self._raw_description
        return EventReader(Position(_NO_NAME, at), description=description)

    def _read(self, reader: EventReader, raw: bytes) -> bytes:
        """Return a verified event; errors include its position."""
        before = reader.offset
        try:
            return reader.read(raw)
        except BinlogError as error:
            raise self.error(error.message, before) from error

    def _first_boundary(self, reader: EventReader, batch: Iterable[bytes]) -> int | None:
        """Return how many of these events precede the first boundary between groups."""
        for count, raw in enumerate(batch):
            before = reader.offset
            event = self._read(reader, raw)
            try:
                boundary = boundary_at(event, self.dialect)
            except BinlogError as error:
                raise self.error(error.message, before) from error
            if boundary is not None:
                return count + (boundary is Boundary.AFTER)
        return None

    def _batches(self, start: int, most: int = _PIECE) -> Iterator[tuple[int, EventBatch]]:
        """Yield batches of events from `start` on, and where the first event of each begins.

        They continue to the file's end, and no batch crosses the range's end. That they arrive at
        the beginning of the next range is checked before the events after it are yielded.
        """
        size = self.contents.size
        range_end = self._bounds.end
        at = start
        known = start
        data = b""
        arrived = range_end >= size
        while known < size:
            inside = known < range_end
            count = min(most, range_end - known) if inside else _PIECE_BEHIND
            # At least the whole of an event that has begun, so that it is not joined many times.
            count = max(count, at + size_of_first(data) - known)
            piece = self.contents.read(known, min(count, size - known))
            if not piece:
                raise self.error(f"the file has become shorter than {size} bytes", at)
            known += len(piece)
            data = data + piece if data else piece
            places, claimed = event_places(data)
            batch = EventBatch(data, places)
            # The events before a failure count.
            while batch.places[0] < places[-1]:
                taken = batch
                if not arrived and at + places[-1] - batch.places[0] >= range_end:
                    taken = batch.before(range_end - at)
                if len(taken):
                    yield at, taken
                batch = batch.within(len(taken))
                at += taken.places[-1] - taken.places[0]
                if not arrived and at >= range_end:
                    self._check_arrival(at)
                    arrived = True
            if claimed is not None:
                raise self.error(f"an event at byte {at} claims a length of {claimed}", at)
            data = data[places[-1] :]
        if at != size and not self._is_cut_off(at):
            raise self.error(
                f"the file ends inside an event: {size - at} bytes after byte {at}", at
            )
        if not arrived:
            self._check_arrival(at)

    def _check_arrival(self, at: int) -> None:
        """Check that the next range finds its first event at `at`, where the events so far end."""
        size = self.contents.size
        begin = self._bounds.end
        boundary = self._first_event(begin, min(at + 1, size))
        if boundary == at:
            return
        if boundary is not None and boundary < at:
            raise self.error(
                f"the bytes {boundary} and on look like an event, and are within another one: read"
                " the file in ranges of another size",
                at,
            )
        if at < size and not self._is_cut_off(at):
            raise self.error("the next event is damaged", at)
        if self._first_event(max(at, begin), size) is not None:
            raise self.error("the next event is damaged", at)

    def _is_cut_off(self, at: int) -> bool:
        """Tell whether the file is in use and the event at `at` was only partly written."""
        if not self.in_use:
            return False
        size = self.contents.size
        if size - at < HEADER_SIZE:
            return True
        header = parse_header(self.contents.read(at, HEADER_SIZE))
        return (
            header.size >= HEADER_SIZE
            and at + header.size > size
            and (
                (at + header.size) & _LOW == header.log_pos
                or (self.dialect.unplaced and header.log_pos == 0)
            )
        )

    def error(self, message: str, at: int) -> BinlogError:
        """Return an error about what follows byte `at`."""
        return BinlogError(message, Position(self._name, at))


class _Groups:
    """Makes parts of groups, starting at a boundary between groups."""

    def __init__(self, reader: RangeReader, begin: int) -> None:
        self._reader = reader
        self._grouper = reader.grouper(begin)
        self.begin = begin
        """Where the next group, or the current one, begins."""
        self._opened: GroupOpened | None = None
        self._end: int | None = None
        """Where the group that is being returned in parts ends."""

    def read(
        self, batch: EventBatch, splits: Splits[StretchOfGroups] | None
    ) -> Iterator[GroupPart | StretchOfGroups]:
        """Yield the parts, or stretches of groups, that the events complete."""
        try:
            if splits is None:
                yield from self._read(list(batch))
                return
            at = self._grouper.position.offset - batch.places[0]
            for first, last, found in splits.split(batch.data, batch.places, at):
                # After the beginning of another one, a group is wrong: the grouper says so.
                if found is None or self._grouper.inside:
                    yield from self._read(list(batch.within(first, last)))
                else:
                    self.begin = at + batch.places[last]
                    self._grouper.pass_over(self.begin, len(found))
                    yield found
        except BinlogError as error:
            if error.position is None or error.position.file != _NO_NAME:
                raise
            raise self._reader.error(error.message, error.position.offset) from error

    def _read(self, batch: Sequence[bytes]) -> Iterator[GroupPart]:
        for item in self._grouper.groups(batch):
            if isinstance(item, Group):
                end = item.end.offset
                yield GroupPart(self.begin, end, item.gtid, item.commit_time, item.steps, item)
                self.begin = end
            elif isinstance(item, GroupOpened):
                self._opened = item
                self._end = self._reader.end_of_group(self.begin)
            elif isinstance(item, GroupChunk):
                if self._opened is not None and self._end is not None:
                    yield self._part(self._opened, self._end, item.steps, None)
            elif isinstance(item, GroupClosed):
                end = item.group.end.offset
                if self._opened is None or self._end != end:
                    raise BinlogError("a transaction ends where it should not", item.group.end)
                yield self._part(self._opened, end, (), item.group)
                self.begin = end
                self._opened = self._end = None
            elif isinstance(item, PositionReached):
                # A Rotate event names the beginning of the next file, and nothing follows it here.
                in_file = item.end.file == _NO_NAME
                self.begin = item.end.offset if in_file else self._reader.contents.size
            else:
                self._opened = self._end = None

    def finish(self, *, may_be_cut_off: bool) -> None:
        """Check the state after the last event of the range.

        Raises BinlogError if a group has not ended, unless it may be truncated.
        """
        if self._grouper.inside and not may_be_cut_off:
            at = self._grouper.position.offset
            raise self._reader.error("a transaction without its end", at)

    def _part(
        self, opened: GroupOpened, end: int, steps: tuple[Step, ...], group: Group | None
    ) -> GroupPart:
        gtid, time = opened.gtid, opened.commit_time
        return GroupPart(self.begin, end, gtid, time, steps, group, opened.xid)
