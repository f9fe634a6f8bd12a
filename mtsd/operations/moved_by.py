"""By how much a new position goes back or forward: by GTID exactly, else by bytes of the files.

What it goes back by is applied again, and what it goes forward by is never applied: so a person has
to say that this is meant. Of another source that has nothing in common, nothing has been applied.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.command import command
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import Position
from mtsd.replica.guards.executed_beyond import count_missing
from mtsd.source.continuation import LONGEST_SET, shown
from mtsd.source.source_state import BinlogFile, SourceState

BACK = Reason(
    "the place {place} goes back by {amount}, to be applied again",
    "if that is meant, say so with --back{both}",
)
FORWARD = Reason(
    "the place {place} goes forward by {amount}, never to be applied",
    "if that is meant, say so with --forward",
)


@dataclass(frozen=True, slots=True)
class Former:
    """Where a channel was.

    `gtids` is all that it has executed, None if unknown; `past` how many groups of it are past the
    low-water mark, and `furthest` the end of the last of them.
    """

    mark: LowWaterMark
    gtids: GtidSet | None
    source_uuid: str
    past: int
    furthest: Position


@dataclass(frozen=True, slots=True)
class MovedBy:
    """How far it has moved in each direction, in words for a person; "": not at all.

    `unknown` says why that is not known; `both`: the union of the former and the new GTIDs, if
    either has what the other lacks.
    """

    back: str = ""
    forward: str = ""
    unknown: str = ""
    both: GtidSet | None = None

    def refused(self, place: object, *, back: bool, forward: bool) -> list[Refused]:
        """Return what a person has not said with `back` and `forward`."""
        words = []
        if self.back and not back:
            both = ""
            if self.both is not None and len(str(self.both)) <= LONGEST_SET:
                together = command("position", "set", f"gtid:{self.both}")
                both = f"; what either has, together, is {together}"
            words.append(refuse(BACK, place=place, amount=self.back, both=both))
        if self.forward and not forward:
            words.append(refuse(FORWARD, place=place, amount=self.forward))
        return words


def moved_by(
    former: Former | None, now: LowWaterMark, source: SourceState, passed_over: GtidSet
) -> MovedBy:
    """Return how far `now`, a place in `source`, is from where the channel was.

    `passed_over` is what the target has executed and would not apply again ("preserve").
    """
    if former is None:
        return MovedBy()
    if source.gtid_mode and former.gtids is not None and now.gtids is not None:
        return _by_gtid(former.gtids, now.gtids, source, passed_over, former.source_uuid)
    if former.source_uuid.lower() != source.uuid.lower():
        return MovedBy(unknown="it was a place of another source, and not known by GTID")
    if not former.mark.position.file or not now.position.file:
        return MovedBy(unknown="one of the places is known by GTID only")
    return _by_file(former, now.position, source.files or ())


def applied_before(executed: GtidSet, former: Former | None, source: SourceState) -> GtidSet:
    """Return what the channel has applied and the target's own replica, with `executed`, lacks.

    With `[target] gtid = "off"` mtsd leaves no GTID of the source on the target, so what it applied
    before the replica took over is in the position alone. It counts only if the replica has gone
    past it: one that is behind mtsd may have been loaded anew since, from an older copy.

    >>> source = SourceState("u", gtid_mode=True, executed=gtids("u:1-9"))
    >>> applied_before(gtids("u:6-9"), Former(mark, gtids("u:1-5"), "u", 0, place), source)
    u:1-5
    """
    if former is None or former.gtids is None or not executed.minus(former.gtids):
        return GtidSet()
    return former.gtids.shared(source.executed).minus(executed)


def _by_gtid(
    former: GtidSet, now: GtidSet, source: SourceState, passed_over: GtidSet, source_uuid: str
) -> MovedBy:
    # What the source has not executed does not come again.
    had = former.shared(source.executed)
    if not had and source_uuid.lower() != source.uuid.lower():
        return MovedBy(unknown="it was a place of another source, with nothing in common")
    back, forward = had.minus(now).minus(passed_over), now.minus(former)
    return MovedBy(
        _transactions(back, now),
        _transactions(forward, former),
        both=now.union(had) if back and forward else None,
    )


def _transactions(gtids: GtidSet, other: GtidSet) -> str:
    if not gtids:
        return ""
    count = count_missing(gtids, other)
    # Between the numbers of a MariaDB's domain there may be holes.
    most = "at most " if gtids.last_numbers() else ""
    return f"{most}{count} transaction{'' if count == 1 else 's'} ({shown(gtids)})"


def _by_file(former: Former, now: Position, files: Sequence[BinlogFile]) -> MovedBy:
    was = former.mark.position
    bases = {place.file.rpartition(".")[0] for place in (was, now)}
    if len(bases) > 1:
        return MovedBy(unknown="the source's files have another name now")
    amount = _bytes(min(was, now), max(was, now), files)
    if now > was:
        # It may be among those that are done past the low-water mark.
        again = former.past if now < former.furthest else 0
        return MovedBy(_groups(again), amount)
    return MovedBy(" and ".join(filter(None, (_groups(former.past), amount))))


def _groups(past: int) -> str:
    return f"up to {past} transactions that are done past the low-water mark" if past else ""


def _bytes(first: Position, last: Position, files: Sequence[BinlogFile]) -> str:
    """Return what is between two places, of which the later one is in the files."""
    if first == last:
        return ""
    if first.file == last.file:
        return f"{last.offset - first.offset} bytes of {first.file}"
    begins, ends = Position(first.file, 0), Position(last.file, 0)
    between = [file for file in files if begins <= Position(file.name, 0) < ends]
    count = last.offset + sum(file.size for file in between)
    if between and between[0].name == first.file:
        return f"{count - first.offset} bytes of {len(between) + 1} files"
    return f"more than {count} bytes, because the files after {first.file} are purged in part"
