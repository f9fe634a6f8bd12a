"""Streams of groups for the tests: what a source's binary log would yield, without its bytes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mtsd.binlog.bytes.event_type import EventType
from mtsd.model.group import Group, GroupKind, PositionReached
from mtsd.model.group_keys import NO_KEYS, GroupKeys
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.model.step import Rows
from mtsd.model.temporary_tables import TemporaryUse

SOURCE_UUID = "11111111-1111-1111-1111-111111111111"
FORMAT = b"format 1"
START = Position("binlog.000001", 4)
START_MARK = LowWaterMark(0, START, None)
DELETES = Rows((bytes((0, 0, 0, 0, EventType.DELETE_ROWS_EVENT)),))


@dataclass(frozen=True, slots=True)
class Shape:
    """What the next group of a stream is to be like; its number and place come from the stream."""

    databases: tuple[str, ...]
    alone: bool = False
    kind: GroupKind = GroupKind.ROWS
    size: int = 100
    anonymous: bool = False
    unsupported: str = ""
    format_description: bytes = FORMAT
    row_flags: int | None = 1
    uses_temporary: TemporaryUse | None = None
    clock: tuple[int, int] = (0, 0)
    """last_committed and sequence_number."""
    commit_id: int = 0
    tables: tuple[str, ...] = ()
    keys: GroupKeys = NO_KEYS
    deletes: bool = False
    """Whether it has an event that deletes rows."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A Rotate, format description, Previous_gtids or Stop event between two groups."""

    new_file: bool = False
    previous_gtids: bool = False


def group_of(shape: Shape, number: int, end: Position) -> Group:
    """Make a group of a shape."""
    gtid = None if shape.anonymous else Gtid(SOURCE_UUID, number)
    return Group(
        number=number,
        kind=shape.kind,
        end=end,
        databases=shape.databases,
        alone=shape.alone,
        steps=(DELETES,) if shape.deletes else (),
        size=shape.size,
        row_flags=shape.row_flags,
        format_description=shape.format_description,
        gtid=gtid,
        last_committed=shape.clock[0],
        sequence_number=shape.clock[1],
        commit_time=number * 1_000_000,
        unsupported=shape.unsupported,
        uses_temporary=shape.uses_temporary,
        commit_id=shape.commit_id,
        tables=shape.tables,
        keys=shape.keys,
    )


def group(
    number: int,
    *databases: str,
    alone: bool = False,
    kind: GroupKind = GroupKind.ROWS,
    size: int = 100,
    anonymous: bool = False,
) -> Group:
    """Make one group that ends at offset 100 x number of the first file."""
    shape = Shape(databases, alone, kind, size, anonymous)
    return group_of(shape, number, Position(START.file, number * 100))


@dataclass(slots=True)
class Stream:
    """A source's history, which grows at its end and can be read again from any position."""

    items: list[Group | PositionReached] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    _end: Position = START
    _after: dict[Position, int] = field(default_factory=lambda: {START: 0})

    @classmethod
    def of(cls, shapes: Iterable[Shape | Marker]) -> "Stream":
        """Make a stream of what it is to hold."""
        stream = cls()
        for shape in shapes:
            stream.append(shape)
        return stream

    def append(self, shape: Shape | Marker) -> None:
        """Let the source write one item more."""
        if isinstance(shape, Marker):
            file = self._end.file
            if shape.new_file:
                file = f"binlog.{int(file.rpartition('.')[2]) + 1:06}"
            offset = 4 if shape.new_file else self._end.offset + 50
            self._end = Position(file, offset)
            gtids = self._executed(len(self.groups)) if shape.previous_gtids else None
            self.items.append(PositionReached(self._end, gtids))
            self._after[self._end] = len(self.items)
            return
        self._end = Position(self._end.file, self._end.offset + 100)
        made = group_of(shape, len(self.groups) + 1, self._end)
        self.items.append(made)
        self._after[self._end] = len(self.items)
        self.groups.append(made)

    def _executed(self, number: int) -> GtidSet:
        """Return everything that the source has executed up to a group."""
        executed = GtidSet()
        for each in self.groups[:number]:
            if each.gtid is not None:
                executed.add(each.gtid)
        return executed

    def after(self, position: Position) -> int:
        """Return the index of the item that begins at `position`."""
        return self._after[position]

    def known_gtids(self, mark: LowWaterMark) -> GtidSet | None:
        """Return what a mark should hold where the stream was read from START; None: unknown."""
        for item in self.items[: self.after(mark.position)]:
            if isinstance(item, PositionReached) and item.gtids is not None:
                return self._executed(mark.number)
        return None


def partitions(group: Group, bind: Sequence[Sequence[str]]) -> frozenset[str]:
    """Return a group's partitions where the databases of each list of `bind` are one."""
    one = {name: together[0] for together in bind for name in together}
    return frozenset(one.get(name, name) for name in group.databases)
