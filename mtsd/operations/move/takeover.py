"""`mtsd takeover`: mtsd goes on where the server's own replica stops.

The order decides. The own replica stops; its place is recorded; only then is its configuration
removed, so that no start of the server begins it again. Whatever fails before that last step starts
it as it was. By GTID the place is all that the target has executed of the source, and what mtsd
itself had applied before: of that, the target has GTIDs of its own.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from time import monotonic
from typing import Final

from mtsd.apply.position.handed_over_table import HandedOver
from mtsd.config import Settings
from mtsd.config.start import GtidStart, Start
from mtsd.model.errors import MtsdError, NeedsPersonError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.command import command
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.operations.check.privileges import WRITES_ALTHOUGH_READ_ONLY
from mtsd.operations.copies.copied import start_of
from mtsd.operations.copies.own_replica import copied_by, gap_of
from mtsd.operations.move.admin import (
    CONFIGURES_REPLICA,
    OWN_USER,
    SETS_READ_ONLY,
    Admin,
    AdminPart,
    AdminSession,
    admin_endpoint,
    require_rights,
)
from mtsd.operations.move.carrying_out import Hands, answered_within, carry_out
from mtsd.operations.move.downstream import downstream
from mtsd.operations.move.fence import set_fence
from mtsd.operations.move.how import HowToMove
from mtsd.operations.move.own_channel import (
    OwnChannel,
    find_channel,
    has_gap,
    wait_until_stopped,
    words_of,
)
from mtsd.operations.move.own_settings import differences, fragment, require_accepted, told
from mtsd.operations.move.record import Record
from mtsd.operations.move.source_now import SourceNow, read_source_now
from mtsd.operations.move.steps import Act, MoveStatement, MoveStep, Task
from mtsd.operations.position import Meant, Moved, reset_position, set_position
from mtsd.operations.recorded import Recorded, read_fence_of, read_recorded, read_with_fence
from mtsd.replica.guards.executed_beyond import count_missing
from mtsd.replica.recovery.recovery import gtids_beyond
from mtsd.source.continuation import shown
from mtsd.wire.traits import ServerTraits, read_traits

OWN_REPLICA: Final = "the target's own replica"
_TARGET: Final = "target"


TAKEN_OVER = Reason(
    "the target's own replica does not read from the source, and mtsd has a position: there is"
    " nothing to take over any more",
    "start mtsd, which goes on from there: mtsd status{config} says where that is",
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a takeover begins with."""

    channel: OwnChannel
    target: ServerTraits
    source: SourceNow
    former: Recorded | None
    gap: bool
    """Something is missing between the workers of the own replica, and it has no GTIDs."""

    @property
    def by_gtid(self) -> bool:
        """Whether its place is known by GTID."""
        return self.source.state.gtid_mode and bool(self.channel.status.executed_gtids)


def steps_of(found: Found) -> tuple[MoveStep, ...]:
    """Return the steps of a takeover; pure."""
    words = words_of(found.target.server)
    name = found.channel.status.channel
    status = found.channel.status
    steps = []
    if found.target.super_read_only:
        steps.append(
            MoveStep(
                "let mtsd write: it keeps read_only, its user needs CONNECTION_ADMIN",
                (_on_target("SET GLOBAL super_read_only = OFF"),),
                (_on_target("SET GLOBAL super_read_only = ON"),),
            )
        )
    restart: tuple[Act, ...] = ()
    filled = Task("filled", "waits until its applier has stopped by itself")
    if found.channel.is_filling:
        steps.append(MoveStep("let it apply what is missing between its workers", (filled,)))
        if status.receiving:
            restart = (_on_target(words.start(name, applier=False)),)
    elif status.receiving or status.applying:
        start = words.start(name, receiver=status.receiving, applier=status.applying)
        restart = (_on_target(start),)
    steps.append(
        MoveStep("stop the server's own replica", (_on_target(words.stop(name)),), restart)
    )
    if found.gap:
        steps.append(
            MoveStep(
                "let it apply what is missing between its workers",
                (
                    _on_target(words.fill_gaps(name)),
                    filled,
                    _on_target(words.stop(name)),
                ),
                (_on_target(words.stop(name)),),
            )
        )
    steps += [
        MoveStep(
            "record its place as mtsd's position",
            (Task("record", "sets the position, and removes the fence"),),
            (Task("forget", "fences mtsd off again"),),
            holds="Run mtsd takeover --execute again: nothing applies until then",
        ),
        MoveStep(
            "remove its configuration: nothing starts it any more",
            (_on_target(words.forget(name)),),
            final=True,
        ),
        MoveStep("compare", (Task("prove", "compares the two"),)),
    ]
    return tuple(steps)


def _on_target(sql: str) -> MoveStatement:
    return MoveStatement.plain(_TARGET, sql)


async def takeover(
    settings: Settings, admin: Admin | None, how: HowToMove, tell: Callable[[str], None]
) -> str:
    """Take over, or only say how; return the line that proves it, "" if nothing was done.

    Raises NeedsPersonError if it is refused, or has failed and was put back; ServerError,
    ConnectionLostError.
    """
    session = AdminSession(admin_endpoint(_TARGET, settings.target, admin), how.timeout)
    try:
        async with answered_within(how.timeout):
            await session.claim(keep=how.execute)
            if how.execute:
                await _require_rights(settings, session)
            found = await _look(settings, session)
        encrypted = found.source.encrypted
        differing = differences(found.channel.settings, settings, encrypted=encrypted)
        steps = steps_of(found)
        if how.execute:
            require_accepted(differing, how.accepted)
        record = Record(tell, how.report if how.execute else None)
        for line in await _lines(settings, session, found):
            record.say(line)
        for line in told(differing, how.accepted):
            record.say(line)
        for line in fragment(found.channel.settings):
            record.say(f"config.toml: {line}")
        for line in found.channel.lines():
            record.keep(f"before: {line}")
        if not how.execute:
            record.plan(steps)
            return ""
        work = _Work(settings, session, found)
        tasks = {
            "filled": work.filled, "record": work.record, "forget": work.forget,
            "prove": work.prove,
        }  # fmt: skip
        await carry_out(steps, Hands({_TARGET: session}, tasks), record, how.timeout)
        record.say(work.proof)
        return work.proof
    finally:
        session.close()


async def _require_rights(settings: Settings, session: AdminSession) -> None:
    """Refuse an admin, or a user of mtsd's own, who would be found wanting in the middle."""
    target = await read_traits(await session.connection())
    sets = SETS_READ_ONLY if target.super_read_only else ()
    parts = [AdminPart(_TARGET, session, target.server, (*CONFIGURES_REPLICA, *sets))]
    with closing(AdminSession(admin_endpoint(_TARGET, settings.target, None))) as own:
        if target.read_only or target.super_read_only:
            # It could record no place, with the own replica stopped already.
            needs = WRITES_ALTHOUGH_READ_ONLY
            parts.append(AdminPart(_TARGET, own, target.server, needs, OWN_USER))
        await require_rights(*parts)


async def _look(settings: Settings, session: AdminSession) -> Found:
    target = await read_traits(await session.connection())
    source = await read_source_now(settings)
    former = await read_recorded(settings)
    try:
        channel = await find_channel(session, target.server, source.known)
    except NeedsPersonError:
        if former is None or await read_fence_of(settings) is not None:
            raise
        raise NeedsPersonError(str(refuse(TAKEN_OVER))) from None
    found = Found(channel, target, source, former, gap=False)
    if found.by_gtid or channel.status.applying:
        # A clean stop fills gaps by itself.
        return found
    gap = await has_gap(session, target.server, channel)
    return Found(channel, target, source, former, gap=gap)


async def _lines(settings: Settings, session: AdminSession, found: Found) -> list[str]:
    status = found.channel.status
    runs = [
        name
        for name, does in (("receives", status.receiving), ("applies", status.applying))
        if does
    ]
    place = shown(GtidSet.parse(status.executed_gtids)) if found.by_gtid else status.executed
    first = (
        f"the target's own replica reads from {status.host}:{status.port} as {status.user}"
        f" (channel {status.channel!r}), {' and '.join(runs) or 'is stopped'}, and is at {place}"
    )
    lines = [first]
    if status.error:
        lines.append(f"its last error: {status.error}")
    if found.channel.is_filling:
        lines.append(
            "it applies what is missing between its workers, and then stops by itself, as after a"
            " takeover that was killed: that is waited for"
        )
    if found.gap:
        lines.append("something is missing between its workers, as after a crash")
    held = former_gtids(found.former)
    if found.by_gtid and held:
        count = count_missing(held, GtidSet.parse(status.executed_gtids))
        if count:
            lines.append(f"mtsd's own position has {count:,} transactions more, which are kept")
    return lines + await downstream(session, found.target, settings)


def former_gtids(former: Recorded | None) -> GtidSet:
    """Return all that a channel had executed by GTID; nothing if that is not known."""
    if former is None or former.channel.mark.gtids is None:
        return GtidSet()
    mark = former.channel.mark
    return former.channel.mark.gtids.union(gtids_beyond(mark, former.workers, ()))


async def place_of(session: AdminSession, found: Found) -> Start:
    """Return the place of the own replica, which has stopped. Raises NeedsPersonError."""
    channel = await find_channel(session, found.target.server, found.source.known)
    server = found.target.server
    if not found.by_gtid and words_of(server).fills_gaps:
        # An error may have stopped its applier after it was looked at.
        refused = await gap_of(await session.connection(), channel.status)
        if refused is not None:
            raise NeedsPersonError(str(refused))
    start = start_of(copied_by(channel.status), found.source.state)
    if isinstance(start, Refused):
        raise NeedsPersonError(str(start))
    if not isinstance(start, GtidStart):
        return start
    # The target has none of the GTIDs of what mtsd applied with [target] gtid = "off".
    held = former_gtids(found.former).shared(found.source.state.executed)
    return GtidStart(str(GtidSet.parse(start.text).union(held)))


class _Work:
    """The tasks of a takeover, which share what they find."""

    def __init__(self, settings: Settings, session: AdminSession, found: Found) -> None:
        self._settings = settings
        self._session = session
        self._found = found
        self._began = monotonic()
        self._recording = False
        self._moved: Moved | None = None
        self.proof = ""

    async def filled(self) -> str:
        return await wait_until_stopped(
            self._session, self._found.target.server, self._found.source.known
        )

    async def record(self) -> str:
        # What was executed up to the stop is not in what was read before.
        source = await read_source_now(self._settings)
        found = Found(
            self._found.channel, self._found.target, source, self._found.former, gap=False
        )
        start = await place_of(self._session, found)
        fence = await read_fence_of(self._settings)
        # Interrupted, it may be recorded.
        self._recording = True
        try:
            self._moved = await set_position(self._settings, start, Meant(forward=True))
        except NeedsPersonError:
            self._recording = False
            raise
        except ServerError:
            self._recording = await self._may_be_recorded(fence)
            raise
        by = self._moved.by.forward
        return f"position {start}" + (f", forward by {by}, which it has applied" if by else "")

    async def _may_be_recorded(self, fence: HandedOver | None) -> bool:
        """Look after an error of the target, which may have written nothing.

        To put back what is as it was would fail by the same error, such as 1290, and the own
        replica would not be started.
        """
        try:
            return await read_with_fence(self._settings) != (self._found.former, fence)
        except MtsdError:
            return True

    async def forget(self) -> str:
        if not self._recording:
            return "nothing was recorded"
        if self._found.former is None:
            await reset_position(self._settings)
            return "mtsd has no position again"
        await set_fence(self._settings, OWN_REPLICA, command_words="takeover --execute")
        return "mtsd does not start: the own replica goes on"

    async def prove(self) -> str:
        recorded = await read_recorded(self._settings)
        if recorded is None or self._moved is None or self._moved.after is None:
            raise NeedsPersonError("the position that was recorded is not there")
        mark = recorded.channel.mark
        milliseconds = (monotonic() - self._began) * 1000
        if mark.gtids is None:
            what = f"at {mark.position}, the place of the own replica"
        else:
            count = count_missing(mark.gtids, GtidSet())
            what = f"{count:,} transactions, equal at GTID {shown(mark.gtids)}"
        self.proof = (
            f"taken over: {what}; {milliseconds:,.0f} ms since the own replica was stopped. Start"
            f" mtsd: systemctl start mtsd, or {command('run')}"
        )
        return ""
