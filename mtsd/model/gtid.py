"""Global transaction identifiers of MySQL and of MariaDB, and sets of them.

MySQL's text form of a set: `UUID[:TAG]:N[-M][:N[-M]]…[,UUID…]`, as `@@gtid_executed` prints it
(manual, "GTID Format and Storage"); a tag applies to the intervals after it, up to the next tag or
UUID.

MariaDB's GTIDs are `DOMAIN-SERVER-N`. Within a domain the binary log has an order, in which the
numbers only grow, whichever server they are from, and usually with holes. So a GTID also names the
place right after it, and a list of them is how far a replica has got in each domain
(documentation, "Global Transaction ID"; `@@gtid_slave_pos`). What has been executed ahead of that
is listed one by one, in MySQL's form: `0-1-100,0-2:103:105-107`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from mtsd.model.intervals import (
    MAX_NUMBERS,
    interval_text,
    is_in,
    union_of,
    with_all_below,
    without,
)

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_TAG: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,31}")
_INTERVAL: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_DOMAIN_AND_SERVER: Final = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")
_PLACE: Final = re.compile(r"([0-9]{1,10}-[0-9]{1,10})-([0-9]{1,20})")
_GTID: Final = re.compile(r"(.+):(-?[0-9]{1,20})|([0-9]{1,10}-[0-9]{1,10})-(-?[0-9]{1,20})")
_UUID_SIZE: Final = 36
_MAX_SERVERS: Final = 1 << 32
_FEW: Final = 8

_Key = tuple[str, str]


class Gtid(NamedTuple):
    """One transaction: where it originated, its number there from 1, its tag.

    `uuid` is that of the server; on MariaDB it is domain and server id, as "0-1".
    """

    uuid: str
    number: int
    tag: str = ""

    @classmethod
    def parse(cls, text: str) -> "Gtid":
        """Parse the text form, whose number may be any. Raises ValueError."""
        match = _GTID.fullmatch(text)
        if match is None:
            raise ValueError(f"not a GTID: {text[:80]!r}")
        if match[3]:
            return cls(_origin(match[3]), int(match[4]))
        uuid, _, tag = match[1].partition(":")
        return cls(uuid, int(match[2]), tag)

    def __str__(self) -> str:
        if self.tag:
            return f"{self.uuid}:{self.tag}:{self.number}"
        return f"{self.uuid}{':' if len(self.uuid) == _UUID_SIZE else '-'}{self.number}"


class GtidSet:
    """A set of GTIDs, kept as sorted disjoint intervals for each UUID and tag.

    Mutable; adding in numerical order takes constant time. Of MariaDB's GTIDs, the set contains
    those that are listed, and in each domain everything up to a place.
    """

    __slots__ = ("_intervals", "_places", "_texts")

    def __init__(self) -> None:
        # Ends are exclusive; adjacent intervals are merged.
        self._intervals: dict[_Key, list[tuple[int, int]]] = {}
        self._texts: dict[_Key, list[str]] = {}
        """Of all intervals but the last, each after a colon: they are printed many times."""
        self._places: dict[str, int] = {}
        """MariaDB: the last number by domain and server, "0-1". A domain's last entry is its place.

        Another one of the domain is kept only where its number is not below.
        """

    @classmethod
    def parse(cls, text: str) -> "GtidSet":
        """Parse the text form; white space is ignored. Raises ValueError naming the bad part."""
        result = cls()
        for part in "".join(text.split()).split(","):
            if not part:
                continue
            place = _PLACE.fullmatch(part)
            if place:
                number = int(place[2])
                if not 0 < number < MAX_NUMBERS:
                    raise ValueError(f"not a GTID: {part[:80]!r}")
                origin = _origin(place[1])
                result._places.pop(origin, None)
                result._places[origin] = number
                continue
            uuid, *items = part.split(":")
            if _DOMAIN_AND_SERVER.fullmatch(uuid) and items:
                uuid = _origin(uuid)
            elif not _UUID.fullmatch(uuid) or not items:
                raise ValueError(f"not a GTID set: {part[:80]!r}")
            else:
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

    def advance(self, gtid: Gtid) -> bool:
        """Add the GTID that comes next in a binary log; return whether it was missing.

        On MariaDB, its place is now how far the set goes in its domain. Only what was listed was
        there before: a log read from a place on does not contain anything from before it.
        """
        uuid, number, _ = gtid
        if len(uuid) == _UUID_SIZE:
            return self.add(gtid)
        key = uuid, ""
        listed = self._intervals.get(key)
        missing = True
        if listed:
            missing = not is_in(listed, number)
            left = without(listed, [(0, number + 1)])
            self._texts.pop(key, None)
            if left:
                self._intervals[key] = left
            else:
                del self._intervals[key]
        places = self._places
        if len(places) > 1 or uuid not in places:
            domain = uuid.partition("-")[0] + "-"
            passed = [each for each in places if each.startswith(domain) and places[each] < number]
            for each in passed:
                del places[each]
            places.pop(uuid, None)
        places[uuid] = number
        return missing

    def places(self) -> list[Gtid]:
        """Return how far the set goes in each of MariaDB's domains: one GTID per domain."""
        last = {origin.partition("-")[0]: origin for origin in self._places}
        return [Gtid(last[domain], self._places[last[domain]]) for domain in sorted(last, key=int)]

    def last_numbers(self) -> Mapping[str, int]:
        """Return MariaDB's last number of each domain and server ("0-1") that is listed."""
        return dict(self._places)

    def domains(self) -> frozenset[int]:
        """Return MariaDB's domains of which the set has anything."""
        listed = [uuid for uuid, _ in self._intervals if len(uuid) != _UUID_SIZE]
        return frozenset(int(origin.partition("-")[0]) for origin in [*self._places, *listed])

    def has_reached(self, place: Gtid) -> bool:
        """Return whether a place is listed, or a later one of its server, in its domain.

        Other servers' numbers say nothing about it where they do not grow within the domain.
        """
        return place.number <= self._places.get(place.uuid, 0)

    def add(self, gtid: Gtid) -> bool:
        """Add one GTID; return whether it was missing."""
        uuid, number, tag = gtid
        intervals = self._intervals.get((uuid, tag))
        if intervals is None:
            if self._places and number <= self._reach(uuid):
                return False
            self._intervals[uuid, tag] = [(number, number + 1)]
            return True
        start, end = intervals[-1]
        if number == end:
            intervals[-1] = (start, number + 1)
        elif number > end:
            intervals.append((number, number + 1))
            texts = self._texts.get((uuid, tag))
            if texts is not None:
                texts.append(interval_text(start, end))
        elif gtid in self:
            return False
        else:
            self.add_interval(uuid, tag, number, number + 1)
        return True

    def add_interval(self, uuid: str, tag: str, start: int, end: int) -> None:
        """Add the numbers from `start` up to but not including `end`."""
        intervals = self._intervals.setdefault((uuid, tag), [])
        at = bisect_right(intervals, (start, 0)) - 1
        if at < 0 or intervals[at][1] < start:
            at += 1
        until = at
        while until < len(intervals) and intervals[until][0] <= end:
            start = min(start, intervals[until][0])
            end = max(end, intervals[until][1])
            until += 1
        intervals[at:until] = [(start, end)]
        texts = self._texts.get((uuid, tag))
        if texts is None:
            return
        if at < len(intervals) - 1:
            texts[at:until] = [interval_text(start, end)]
        else:
            del texts[at:]
            if len(texts) < at:
                texts.append(interval_text(intervals[at - 1][0], intervals[at - 1][1]))

    def update(self, other: "GtidSet") -> None:
        """Add every GTID of `other`."""
        for key, added in other._intervals.items():  # noqa: SLF001 - the same class
            mine = self._intervals.get(key)
            if mine and len(added) < _FEW:
                for start, end in added:
                    self.add_interval(key[0], key[1], start, end)
            elif added:
                self._intervals[key] = union_of(mine, added) if mine else list(added)
                self._texts.pop(key, None)
        for origin, number in other._places.items():  # noqa: SLF001 - the same class
            self._update_place(origin, number)

    def _update_place(self, origin: str, number: int) -> None:
        """Go as far as this GTID, unless the set goes farther in its domain."""
        if number <= self._reach(origin):
            return
        places = self._places
        domain = origin.partition("-")[0] + "-"
        others = [each for each in places if each.startswith(domain) and each != origin]
        places.pop(origin, None)
        places[origin] = number
        for each in others:
            other = places.pop(each)
            if other >= number:
                places[each] = other

    def _reach(self, origin: str) -> int:
        """Return up to which number the set contains everything of a domain and server."""
        places = self._places
        number = places.get(origin)
        if number is not None:
            return number
        if len(origin) == _UUID_SIZE:
            return 0
        domain = origin.partition("-")[0] + "-"
        return max((places[each] for each in places if each.startswith(domain)), default=0)

    def union(self, other: "GtidSet") -> "GtidSet":
        """Return the GTIDs that are in either set."""
        result = self.copy()
        result.update(other)
        return result

    def intersection(self, other: "GtidSet") -> "GtidSet":
        """Return the GTIDs that are in both; of MariaDB's places, those that `other` reaches."""
        return self.minus(self.minus(other))

    def shared(self, other: "GtidSet") -> "GtidSet":
        """Return what both sets have; in MariaDB's domains, everything up to the lower place."""
        return self.intersection(other).union(other.intersection(self))

    def minus(self, other: "GtidSet") -> "GtidSet":
        """Return the GTIDs of this set that `other` lacks.

        Of each of MariaDB's domains, only the place that this set has reached counts: where numbers
        do not grow, a server no longer knows all that it has passed.
        """
        result = GtidSet()
        for key, intervals in self._intervals.items():
            holes = other._intervals.get(key)  # noqa: SLF001 - the same class
            if other._places:  # noqa: SLF001
                holes = with_all_below(other._reach(key[0]) + 1, holes or [])  # noqa: SLF001
            left = without(intervals, holes) if holes else list(intervals)
            if left:
                result._intervals[key] = left
            if key in self._texts and left == intervals[-len(left) :]:
                result._texts[key] = self._texts[key][len(intervals) - len(left) :]
        for origin, number, _ in self.places():
            if number > other._reach(origin):  # noqa: SLF001
                result._places[origin] = number
        return result

    def listed_beyond(self, other: "GtidSet") -> "GtidSet":
        """Return what is listed here and not known to be in `other`.

        On MariaDB, another server's transaction may come after a domain's place in the log and yet
        have a lower number: it is not taken to be passed, even if it may be.
        """
        result = GtidSet()
        for key, intervals in self._intervals.items():
            holes = other._intervals.get(key) or []  # noqa: SLF001 - the same class
            place = other._places.get(key[0])  # noqa: SLF001
            if place is not None:
                holes = with_all_below(place + 1, holes)
            left = without(intervals, holes) if holes else list(intervals)
            if left:
                result._intervals[key] = left
        return result

    def copy(self) -> "GtidSet":
        """Return an independent copy.

        The copies of a large set that grows are printed: what is made for that is kept here, or
        each of them would make all of it again.
        """
        result = GtidSet()
        for key in self._intervals:
            self._interval_texts(key)
        result._intervals = {key: list(value) for key, value in self._intervals.items()}
        result._texts = {key: list(value) for key, value in self._texts.items()}
        result._places = dict(self._places)
        return result

    def intervals(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield (UUID, tag, first number, last number + 1) of what is listed, sorted."""
        for uuid, tag in sorted(self._intervals):
            for start, end in self._intervals[uuid, tag]:
                yield uuid, tag, start, end

    def issubset(self, other: "GtidSet") -> bool:
        """Return whether `other` contains all of this set."""
        return not self.minus(other)

    def __contains__(self, gtid: Gtid) -> bool:
        intervals = self._intervals.get((gtid.uuid, gtid.tag))
        if intervals and is_in(intervals, gtid.number):
            return True
        return bool(self._places) and gtid.number <= self._reach(gtid.uuid)

    def __bool__(self) -> bool:
        return bool(self._places) or any(self._intervals.values())

    def __len__(self) -> int:
        return sum(end - start for _, _, start, end in self.intervals()) + sum(
            self._places.values()
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GtidSet)
            and list(self.intervals()) == list(other.intervals())
            and self._places == other._places
        )

    __hash__ = None  # type: ignore[assignment] # mutable

    def __str__(self) -> str:
        texts: dict[str, str] = {}
        for key in sorted(self._intervals):
            intervals = self._intervals[key]
            if not intervals:
                continue
            uuid, tag = key
            before = texts.get(uuid, uuid) + (f":{tag}" if tag else "")
            of_all_but_last = "".join(self._interval_texts(key))
            texts[uuid] = before + of_all_but_last + interval_text(*intervals[-1])
        if not self._places:
            return ",".join(texts.values())
        places = sorted(self._places, key=lambda origin: int(origin.partition("-")[0]))
        return ",".join((*(f"{each}-{self._places[each]}" for each in places), *texts.values()))

    def _interval_texts(self, key: _Key) -> list[str]:
        texts = self._texts.get(key)
        if texts is None:
            texts = [interval_text(start, end) for start, end in self._intervals[key][:-1]]
            self._texts[key] = texts
        return texts

    def __repr__(self) -> str:
        return f"GtidSet({str(self)!r})"


def _origin(text: str) -> str:
    """Return domain and server without leading zeros. Raises ValueError if one is too large."""
    domain, _, server = text.partition("-")
    if max(int(domain), int(server)) >= _MAX_SERVERS:
        raise ValueError(f"not a domain and a server id: {text[:80]!r}")
    return f"{int(domain)}-{int(server)}"


def _hyphenated(uuid: str) -> str:
    digits = uuid.replace("-", "")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
