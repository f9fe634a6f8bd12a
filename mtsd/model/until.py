"""Where a replica stops by itself: the conditions of START REPLICA UNTIL (MySQL manual).

Pure: `Goal` sees each item of the stream once, in order, and says where the end is.
"""

from dataclasses import dataclass

from mtsd.model.errors import NeedsPersonError
from mtsd.model.group import (
    Group,
    GroupClosed,
    GroupOpened,
    PositionReached,
    StreamItem,
)
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position, parse_position
from mtsd.model.server import Flavour, flavour_of_origin


@dataclass(frozen=True, slots=True)
class UntilPosition:
    """Every group that begins before a place in the source's binary log."""

    position: Position

    @classmethod
    def parse(cls, text: str) -> "UntilPosition":
        """Parse "FILE:POS". Raises ValueError with the reason."""
        position = parse_position(text)
        if position is None:
            raise ValueError("FILE:POS is needed")
        return cls(position)

    def __str__(self) -> str:
        return f"position {self.position}"


@dataclass(frozen=True, slots=True)
class UntilBeforeGtids:
    """Every group before the first one that is in a GTID set."""

    gtids: GtidSet

    def __str__(self) -> str:
        return f"before the GTIDs {self.gtids}"


@dataclass(frozen=True, slots=True)
class UntilAfterGtids:
    """Every group up to the last one of a GTID set, those between them included."""

    gtids: GtidSet

    def __str__(self) -> str:
        return f"after the GTIDs {self.gtids}"


@dataclass(frozen=True, slots=True)
class UntilGapsFilled:
    """Every group before the last one that a previous run has committed."""

    def __str__(self) -> str:
        return "no gaps"


Until = UntilPosition | UntilBeforeGtids | UntilAfterGtids | UntilGapsFilled


def parse_gtids(text: str) -> GtidSet:
    """Parse the GTID set of a condition. Raises ValueError with the reason."""
    gtids = GtidSet.parse(text)
    if not gtids:
        raise ValueError("a GTID set is needed")
    return gtids


def refuse_other_family(until: Until, source: Flavour) -> None:
    """Raise NeedsPersonError if GTIDs of a condition are not such as that source's groups have."""
    if not isinstance(until, UntilBeforeGtids | UntilAfterGtids):
        return
    gtids = until.gtids
    origins = [each.uuid for each in gtids.places()] + [uuid for uuid, *_ in gtids.intervals()]
    for origin in origins:
        family = flavour_of_origin(origin)
        if family is not source:
            raise NeedsPersonError(
                f"the run is to end {until}: GTIDs of {origin} are {family.value}'s, but the source"
                f" is {source.value}, and none of its groups would ever have one"
            )


class Goal:
    """Whether `until` is reached; no gap that a previous run has left remains then.

    `mark` is where reading begins, `highest` the number of the highest group that has been
    committed, and `executed` the GTIDs of all of them; None if unknown.
    """

    def __init__(
        self, until: Until, mark: LowWaterMark, highest: int, executed: GtidSet | None
    ) -> None:
        self._until = until
        self._highest = highest
        self._left = GtidSet()
        """Of UntilAfterGtids: those that have not been read."""
        self._met = isinstance(until, UntilGapsFilled)
        if isinstance(until, UntilAfterGtids):
            self._left = until.gtids
        if executed is not None:
            self._executed(executed)
        self._passed(mark.position)
        self._number = mark.number
        self.reached = self._met and self._number >= highest
        """Whether nothing more is to be applied."""

    def is_past(self, item: StreamItem) -> bool:
        """Return whether the goal is before `item`, which is the next one of the stream.

        Raises NeedsPersonError if the source's groups do not tell.
        """
        if isinstance(item, Group | GroupOpened) and not self.reached:
            self.reached = item.number > self._highest and (self._met or self._is_before(item))
        return self.reached

    def passed(self, item: StreamItem) -> None:
        """Note that `item` is to be applied."""
        group = item.group if isinstance(item, GroupClosed) else item
        if isinstance(group, Group):
            if group.gtid is not None and not self._met:
                self._executed(_only(group.gtid))
            self._passed(group.end)
            self._number = group.number
        elif isinstance(group, PositionReached):
            if group.gtids is not None:
                # Of what was executed before reading began, nothing else may tell.
                self._executed(group.gtids)
            self._passed(group.end)
        else:
            return
        self.reached = self._met and self._number >= self._highest

    def _is_before(self, group: Group | GroupOpened) -> bool:
        until = self._until
        begin = Position(group.end.file, group.begin) if isinstance(group, Group) else group.begin
        if isinstance(until, UntilPosition):
            return begin >= until.position
        if isinstance(until, UntilGapsFilled):
            return True
        gtid = group.gtid
        if gtid is None:
            raise NeedsPersonError(
                f"group {group.number}, beginning at {begin}, has no GTID, so {until} is a"
                " condition that it does not meet or miss: use --until-position FILE:POS"
            )
        return isinstance(until, UntilBeforeGtids) and _reaches(gtid, until.gtids)

    def _executed(self, gtids: GtidSet) -> None:
        """Note that all of these groups have been applied, or are about to be."""
        until = self._until
        if isinstance(until, UntilAfterGtids) and self._left:
            self._left = self._left.minus(gtids)
            self._met = not self._left
        elif isinstance(until, UntilBeforeGtids) and not self._met:
            self._met = bool(until.gtids.intersection(gtids))

    def _passed(self, position: Position) -> None:
        until = self._until
        if not isinstance(until, UntilPosition) or self._met:
            return
        if not position.file:
            return
        wanted = until.position
        if position.file.rpartition(".")[0] != wanted.file.rpartition(".")[0]:
            raise NeedsPersonError(
                f"--until-position is in {wanted.file}, but the source's binary log files are named"
                f" like {position.file}"
            )
        self._met = position >= wanted


def _reaches(gtid: Gtid, gtids: GtidSet) -> bool:
    """Return whether a group is one of the set, or on MariaDB at the set's place or past it."""
    domain = gtid.uuid.partition("-")[0]
    for place in gtids.places():
        if place.uuid.partition("-")[0] == domain:
            return gtid.number >= place.number
    return gtid in gtids


def _only(gtid: Gtid) -> GtidSet:
    result = GtidSet()
    result.advance(gtid)
    return result
