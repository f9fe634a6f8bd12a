"""What a handover begins with, whether it is possible, and its steps: nothing here waits."""

from dataclasses import dataclass
from typing import Final

from mtsd.config import Settings
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.operations.move.own_channel import words_of
from mtsd.operations.move.own_statements import GoesOn, ReplicaAccount, configuring
from mtsd.operations.move.source_now import SourceNow
from mtsd.operations.move.steps import MoveStatement, MoveStep, Task
from mtsd.operations.recorded import Recorded
from mtsd.source.continuation import shown
from mtsd.wire.replica_status import ReplicaStatus
from mtsd.wire.replica_words import sql_text
from mtsd.wire.traits import ServerTraits

FAMILIES = Reason(
    "the source is a {source} and the target is a {target}: no server's own replica reads from"
    " the other family",
    "let mtsd go on",
)
GTID_MODES = Reason(
    "gtid_mode of the source is {source} and that of the target is {target}: the target's own"
    " replica refuses transactions of the other kind",
    "set gtid_mode to the same on both",
)
GAPS = Reason(
    "{count} transactions past {place} are applied, and some before them are not: mtsd was not"
    " stopped gracefully",
    "mtsd run --until-gaps-filled{config}, and hand over then",
)
DOUBT = Reason(
    "group {numbers} is in doubt: it may or may not have been applied",
    "start mtsd, which settles it, or mtsd resolve{config}; and hand over then",
)
NOT_BY_GTID = Reason(
    "mtsd's position is not known by GTID, so that the target cannot be told what it has",
    "let mtsd run until the source has begun its next binary log file (FLUSH BINARY LOGS)",
)
NAME_IN_USE = Reason(
    "the target's own replica has channel {channel!r} already, which reads from {source}",
    "RESET REPLICA ALL for that channel if it is not needed, or choose another name with"
    " --replica-channel",
)
APPLIED_MORE = Reason(
    "the target's own replica (channel {channel!r}) has applied more than mtsd: it is at {there},"
    " and mtsd at {here}",
    "take over from it (mtsd takeover --execute), and hand over then",
)
_GOES_ON: Final = (
    "mtsd stays fenced off, as the own replica may have applied more: STOP REPLICA if it runs, and"
    " mtsd takeover --execute goes on from its place"
)
PURGED = Reason(
    "the source has purged transactions that the target lacks: {gtids}",
    "let mtsd apply what the source still has; if mtsd cannot either, the target needs a new copy",
)


@dataclass(frozen=True, slots=True)
class Handing:
    """Both servers and the position, read before anything is done."""

    recorded: Recorded
    target: ServerTraits
    source: SourceNow
    account: ReplicaAccount
    channel: str
    """Of the own replica."""
    executed: GtidSet
    """What the target has executed by GTID; on a MariaDB what its binary log has."""
    follows: str
    """A MariaDB's gtid_slave_pos."""
    taken: tuple[ReplicaStatus, ...]
    """Channels of the own replica that have the name already."""

    @property
    def follows_variable(self) -> bool:
        """Whether the own replica goes on by a variable: it is a MariaDB's."""
        return words_of(self.target.server).follows_variable

    @property
    def by_gtid(self) -> bool:
        """Whether the own replica goes on by GTID."""
        return self.source.state.gtid_mode

    @property
    def has(self) -> GtidSet:
        """All that mtsd has applied, by GTID."""
        return self.recorded.channel.mark.gtids or GtidSet()

    @property
    def unknown(self) -> GtidSet:
        """What the target has and does not know of: mtsd applied it under other GTIDs."""
        if not self.by_gtid or self.follows_variable:
            return GtidSet()
        return self.has.minus(self.executed)

    @property
    def to_follow(self) -> str:
        """The gtid_slave_pos of a MariaDB: the place, and its own domains."""
        places = [str(place) for place in self.has.places()]
        domains = self.has.domains()
        others = [
            str(place)
            for place in self.executed.places()
            if int(place.uuid.partition("-")[0]) not in domains
        ]
        return ",".join([*places, *others])

    def lacking(self, executed: GtidSet, follows: str) -> str:
        """Return what the target, read again, does not know of; "" if nothing."""
        if self.follows_variable:
            lacks = GtidSet.parse(self.to_follow).minus(GtidSet.parse(follows))
        else:
            lacks = self.has.minus(executed)
        return shown(lacks) if lacks else ""


def refusals(handing: Handing) -> list[Refused]:
    """Return why the own replica could not go on, or not rightly."""
    recorded, source, target = handing.recorded, handing.source, handing.target
    mark = recorded.channel.mark
    found = []
    if words_of(source.traits.server).follows_variable != handing.follows_variable:
        families = source.traits.server.flavour.value, target.server.flavour.value
        return [refuse(FAMILIES, source=families[0], target=families[1])]
    if source.traits.gtid_mode != target.gtid_mode:
        modes = ["ON" if each else "not" for each in (source.traits.gtid_mode, target.gtid_mode)]
        found.append(refuse(GTID_MODES, source=modes[0], target=modes[1]))
    if handing.by_gtid and mark.gtids is None:
        found.append(refuse(NOT_BY_GTID))
    past = len(recorded.executed)
    if past:
        found.append(refuse(GAPS, count=past, place=mark.position))
    if recorded.in_doubt:
        numbers = ", ".join(str(each.number) for each in recorded.in_doubt)
        found.append(refuse(DOUBT, numbers=numbers))
    for each in handing.taken:
        where = f"{each.host}:{each.port}"
        if where == str(handing.account):
            there = _more_than_mtsd(handing, each)
            if there:
                here = mark.gtids if handing.by_gtid else mark.position
                found.append(refuse(APPLIED_MORE, channel=each.channel, there=there, here=here))
                continue
            if not each.applying and not each.receiving:
                # What a handover that was killed has left, for example.
                continue
        found.append(refuse(NAME_IN_USE, channel=each.channel, source=where))
    if handing.by_gtid and not handing.follows_variable:
        gone = source.state.purged.minus(handing.has).minus(handing.executed)
        if gone:
            found.append(refuse(PURGED, gtids=shown(gone)))
    return found


def _more_than_mtsd(handing: Handing, channel: ReplicaStatus) -> str:
    """Return where a channel is, if the place of mtsd would apply something again; else ""."""
    if not handing.by_gtid:
        more = channel.executed.file and channel.executed > handing.recorded.channel.mark.position
        return str(channel.executed) if more else ""
    if not handing.follows_variable:
        # It reads by all that the target has executed.
        return ""
    applied = GtidSet.parse(handing.follows)
    of_source = applied.shared(handing.source.state.executed)
    return handing.follows if of_source.minus(handing.has) else ""


def steps_of(settings: Settings, handing: Handing) -> tuple[MoveStep, ...]:
    """Return the steps of a handover."""
    words = words_of(handing.target.server)
    mark = handing.recorded.channel.mark
    place = GoesOn(handing.has if handing.by_gtid else None, mark.position)
    configure = configuring(
        words,
        handing.channel,
        settings,
        handing.account,
        place,
        encrypted=handing.source.encrypted,
    )
    steps = [
        MoveStep(
            "fence mtsd off: it does not start on this channel any more",
            (Task("fence", "records who applies the source from now on"),),
            (Task("unfence", "removes the fence"),),
        )
    ]
    told = Task("told", "reads it back")
    if handing.follows_variable:
        steps.append(
            MoveStep(
                "tell the target where its own replica begins",
                (_follow(handing.to_follow), told),
                (_follow(handing.follows),),
            )
        )
    elif handing.unknown:
        purge = f"SET GLOBAL gtid_purged = '+{handing.unknown}'"
        name = "tell the target what it has (that stays, and harms nobody)"
        steps.append(MoveStep(name, (MoveStatement.plain("target", purge), told)))
    anew = [MoveStatement.plain("target", words.forget(each.channel)) for each in handing.taken]
    steps += [
        MoveStep(
            "configure the server's own replica",
            (*anew, *configure),
            (MoveStatement.plain("target", words.forget(handing.channel)),),
            holds=_GOES_ON,
        ),
        MoveStep(
            "start it",
            (
                MoveStatement.plain("target", words.start(handing.channel)),
                Task("watch", "waits until it has caught up and run for a while without an error"),
                Task("prove", "compares the two"),
            ),
            (
                MoveStatement.plain("target", words.stop(handing.channel)),
                Task("come back", "sets mtsd's position after what it has applied"),
            ),
            holds=_GOES_ON,
        ),
    ]
    return tuple(steps)


def _follow(place: str) -> MoveStatement:
    return MoveStatement.plain("target", f"SET GLOBAL gtid_slave_pos = {sql_text(place)}")
