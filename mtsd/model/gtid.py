"""Global transaction identifiers of MySQL and sets of them.

Text form: `UUID[:TAG]:N[-M][:N[-M]]…[,UUID…]`, as `@@gtid_executed` prints it (manual, "GTID Format
and Storage"); a tag applies to the intervals after it, up to the next tag or UUID.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_TAG: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,31}")
_INTERVAL: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")

_Key = tuple[str, str]


class Gtid(NamedTuple):
    """One transaction: the UUID of its originating server, its number there from 1, its tag."""

    uuid: str
    number: int
    tag: str = ""

    def __str__(self) -> str:
        return f"{self.uuid}:{self.tag}:{self.number}" if self.tag else f"{self.uuid}:{self.number}"


class GtidSet:
    """A set of GTIDs, kept as sorted disjoint intervals for each UUID and tag.

    Mutable; adding in numerical order takes constant time.
    """

    __slots__ = ("_intervals", "_texts")

    def __init__(self) -> None:
        # Ends are exclusive; adjacent intervals are merged.
        self._intervals: dict[_Key, list[tuple[int, int]]] = {}
        self._texts: dict[_Key, list[str]] = {}
        """Of all intervals but the last, each after a colon: they are printed many times."""

    @classmethod
    def parse(cls, text: str) -> "GtidSet":
        """Parse the text form; white space is ignored. Raises ValueError naming the bad part."""
        result = cls()
        for part in "".join(text.split()).split(","):
            if not part:
                continue
            uuid, *items = part.split(":")
            if not _UUID.fullmatch(uuid) or not items:
                raise ValueError(f"not a GTID set: {part[:80]!r}")
            uuid = _hyphenated(uuid.lower())
            tag = ""
            for item in items:
                interval = _INTERVAL.fullmatch(item)
                if interval:
                    first = int(interval[1])
                    last = int(interval[2] or first)
                    if first < 1 or last < first:
                        raise ValueError(f"not an interval of a GTID set: {item[:80]!r}")
                    result.add_interval(uuid, tag, first, last + 1)
                elif _TAG.fullmatch(item):
                    tag = item.lower()
                else:
                    raise ValueError(f"neither an interval nor a tag of a GTID set: {item[:80]!r}")
        return result

    def add(self, gtid: Gtid) -> bool:
        """Add one GTID; return whether it was missing."""
        uuid, number, tag = gtid
        intervals = self._intervals.get((uuid, tag))
        if intervals is None:
            self._intervals[uuid, tag] = [(number, number + 1)]
            return True
        start, end = intervals[-1]
        if number == end:
            intervals[-1] = (start, number + 1)
        elif number > end:
            intervals.append((number, number + 1))
            texts = self._texts.get((uuid, tag))
            if texts is not None:
                texts.append(_interval_text(start, end))
        elif gtid in self:
            return False
        else:
            self.add_interval(uuid, tag, number, number + 1)
        return True

    def add_interval(self, uuid: str, tag: str, start: int, end: int) -> None:
        """Add the numbers from `start` up to but not including `end`."""
        intervals = self._intervals.setdefault((uuid, tag), [])
        self._texts.pop((uuid, tag), None)
        at = bisect_right(intervals, (start, 0)) - 1
        if at < 0 or intervals[at][1] < start:
            at += 1
        until = at
        while until < len(intervals) and intervals[until][0] <= end:
            start = min(start, intervals[until][0])
            end = max(end, intervals[until][1])
            until += 1
        intervals[at:until] = [(start, end)]

    def update(self, other: "GtidSet") -> None:
        """Add every GTID of `other`."""
        for uuid, tag, start, end in other.intervals():
            self.add_interval(uuid, tag, start, end)

    def union(self, other: "GtidSet") -> "GtidSet":
        """Return the GTIDs that are in either set."""
        result = self.copy()
        result.update(other)
        return result

    def intersection(self, other: "GtidSet") -> "GtidSet":
        """Return the GTIDs that are in both sets."""
        return self.minus(self.minus(other))

    def minus(self, other: "GtidSet") -> "GtidSet":
        """Return the GTIDs of this set that `other` lacks."""
        result = GtidSet()
        for key, intervals in self._intervals.items():
            holes = other._intervals.get(key)  # noqa: SLF001 - the same class
            left = _without(intervals, holes) if holes else list(intervals)
            if left:
                result._intervals[key] = left
            if key in self._texts and left == intervals[-len(left) :]:
                result._texts[key] = self._texts[key][len(intervals) - len(left) :]
        return result

    def copy(self) -> "GtidSet":
        """Return an independent copy."""
        result = GtidSet()
        result._intervals = {key: list(value) for key, value in self._intervals.items()}
        result._texts = {key: list(value) for key, value in self._texts.items()}
        return result

    def intervals(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield (UUID, tag, first number, last number + 1), sorted."""
        for uuid, tag in sorted(self._intervals):
            for start, end in self._intervals[uuid, tag]:
                yield uuid, tag, start, end

    def issubset(self, other: "GtidSet") -> bool:
        """Return whether `other` contains all of this set."""
        return not self.minus(other)

    def __contains__(self, gtid: Gtid) -> bool:
        intervals = self._intervals.get((gtid.uuid, gtid.tag))
        if not intervals:
            return False
        at = bisect_right(intervals, (gtid.number, 1 << 64)) - 1
        return at >= 0 and intervals[at][0] <= gtid.number < intervals[at][1]

    def __bool__(self) -> bool:
        return any(self._intervals.values())

    def __len__(self) -> int:
        return sum(end - start for _, _, start, end in self.intervals())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GtidSet) and list(self.intervals()) == list(other.intervals())

    __hash__ = None  # type: ignore[assignment] # mutable

    def __str__(self) -> str:
        texts: dict[str, str] = {}
        for key in sorted(self._intervals):
            intervals = self._intervals[key]
            if not intervals:
                continue
            if key not in self._texts:
                self._texts[key] = [_interval_text(*one) for one in intervals[:-1]]
            uuid, tag = key
            before = texts.get(uuid, uuid) + (f":{tag}" if tag else "")
            texts[uuid] = before + "".join(self._texts[key]) + _interval_text(*intervals[-1])
        return ",".join(texts.values())

    def __repr__(self) -> str:
        return f"GtidSet({str(self)!r})"


def _interval_text(start: int, end: int) -> str:
    return f":{start}" if end == start + 1 else f":{start}-{end - 1}"


def _without(
    intervals: list[tuple[int, int]], holes: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    left: list[tuple[int, int]] = []
    # Most of what a checkpoint holds is removed: one hole at the beginning.
    at = bisect_right(intervals, (holes[0][1], 0)) - 1
    if at > 0 and holes[0][0] <= intervals[0][0]:
        intervals = intervals[at:]
    first_hole = 0
    for start, end in intervals:
        at = start
        while first_hole < len(holes) and holes[first_hole][1] <= at:
            first_hole += 1
        for hole_start, hole_end in holes[first_hole:]:
            if hole_start >= end or at >= end:
                break
            if hole_start > at:
                left.append((at, hole_start))
            at = hole_end
        if at < end:
            left.append((at, end))
    return left


def _hyphenated(uuid: str) -> str:
    digits = uuid.replace("-", "")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
