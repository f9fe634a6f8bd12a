"""Where the group is in the source's binary log that a message names by its number."""

from mtsd.config import Settings
from mtsd.model.errors import NeedsPersonError
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import Position
from mtsd.operations.recorded import Recorded, read_recorded

_OTHERWISE = "name it by --gtid, --position or --from, whichever the message has"
NOT_BEGUN = Reason(
    "group {number} cannot be found by its number: channel {channel!r} has no position on the"
    " target from which it could be counted",
    _OTHERWISE,
)
PASSED = Reason(
    "group {number} cannot be found by its number: it is not after the channel's position, group"
    " {mark}, from which it could be counted, and nothing is on record about it",
    _OTHERWISE,
)
BY_GTID_ONLY = Reason(
    "group {number} cannot be found by its number: the channel's position, from which it could be"
    " counted, is known by GTID only",
    _OTHERWISE,
)


async def place_of_group(settings: Settings, number: int) -> Position | LowWaterMark:
    """Return where a group ends, or the position from which it can be counted.

    Raises NeedsPersonError if its number does not tell, and as `read_recorded` does.
    """
    place = where_is(number, await read_recorded(settings), settings.replica.channel)
    if isinstance(place, Refused):
        raise NeedsPersonError(str(place))
    return place


def where_is(
    number: int, recorded: Recorded | None, channel: str
) -> Position | LowWaterMark | Refused:
    """Decide where a group is: numbers count the groups of a channel from its beginning."""
    if recorded is None:
        return refuse(NOT_BEGUN, number=number, channel=channel)
    known: list[FailedGroup] = [each.group for each in recorded.skipped]
    known += [doubt.group for doubt in recorded.in_doubt]
    if recorded.stopped is not None:
        known.append(recorded.stopped.group)
    for group in known:
        if group.number == number and group.end is not None and group.end.file:
            return group.end
    mark = recorded.channel.mark
    if number <= mark.number:
        return refuse(PASSED, number=number, mark=mark.number)
    if not mark.position.file:
        return refuse(BY_GTID_ONLY, number=number)
    return mark
