"""`mtsd handover`: the server's own replica goes on where mtsd has stopped.

mtsd is fenced off before anything else, so that no start of its unit applies everything a second
time. Until the own replica has run for a while without an error, all of it can be undone, but for
one thing: GTIDs that the target was told to have stay, and harm nobody.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

from mtsd.config import Settings
from mtsd.config.settings import EndpointSettings
from mtsd.model.error_numbers import NOT_ALLOWED
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.move.admin import (
    CONFIGURES_REPLICA,
    SETS_READ_ONLY,
    Admin,
    AdminPart,
    AdminSession,
    admin_endpoint,
    require_rights,
)
from mtsd.operations.move.carrying_out import Hands, answered_within, carry_out
from mtsd.operations.move.downstream import readers_of
from mtsd.operations.move.fence import remove_fence, set_fence
from mtsd.operations.move.handing import Handing, refusals, steps_of
from mtsd.operations.move.how import HowToMove
from mtsd.operations.move.log_end import read_executed
from mtsd.operations.move.own_channel import OwnChannel, find_channel, words_of
from mtsd.operations.move.own_settings import Difference, after_a_restart, require_accepted, told
from mtsd.operations.move.own_statements import ReplicaAccount, only_here
from mtsd.operations.move.record import Record
from mtsd.operations.move.source_now import SourceNow, read_source_now
from mtsd.operations.move.takeover import OWN_REPLICA, Found, place_of
from mtsd.operations.position import Meant, set_position
from mtsd.operations.recorded import Recorded, read_recorded
from mtsd.operations.stopped_channel import answering_daemon
from mtsd.replica.guards.executed_beyond import count_missing
from mtsd.source.continuation import shown
from mtsd.wire.exchange import Value
from mtsd.wire.replica_status import ReplicaStatus, own_channels
from mtsd.wire.traits import ServerTraits, read_traits

_TARGET: Final = "target"
_LOOK_S: Final = 0.05
_OPEN_TABLES: Final = 5


@dataclass(frozen=True, slots=True)
class OwnReplica:
    """How the own replica is to read: None means as mtsd does.

    `watch`: how many seconds it has to run without an error before mtsd is no longer needed.
    """

    account: Admin | None = None
    host: str = ""
    port: int = 0
    channel: str = ""
    watch: float = 10.0


async def handover(
    settings: Settings,
    admin: Admin | None,
    own: OwnReplica,
    how: HowToMove,
    tell: Callable[[str], None],
) -> str:
    """Hand over, or only say how; return the line that proves it, "" if nothing was done.

    Raises NeedsPersonError if it is refused, or has failed and was put back; ServerError,
    ConnectionLostError.
    """
    session = AdminSession(admin_endpoint(_TARGET, settings.target, admin), how.timeout)
    try:
        async with answered_within(how.timeout):
            await session.claim(keep=how.execute)
            if how.execute:
                target = await read_traits(await session.connection())
                await require_rights(AdminPart(_TARGET, session, target.server, CONFIGURES_REPLICA))
            handing = await _look(settings, session, own)
            of_file = await _filter_of_file(session, handing.target)
        differing = [*only_here(settings), *_left_behind(handing.recorded)]
        differing += [] if of_file is None else after_a_restart(of_file, settings)
        if how.execute:
            sets = SETS_READ_ONLY if handing.unknown else ()
            await require_rights(AdminPart(_TARGET, session, handing.target.server, sets))
            require_accepted(differing, how.accepted)
        record = Record(tell, how.report if how.execute else None)
        for line in await _lines(settings, session, handing):
            record.say(line)
        for line in told(differing, how.accepted):
            record.say(line)
        steps = steps_of(settings, handing)
        if not how.execute:
            record.plan(steps)
            return ""
        work = _Work(settings, session, handing, own.watch)
        await carry_out(steps, Hands({_TARGET: session}, work.tasks), record, how.timeout)
        record.say(work.proof)
        return work.proof
    finally:
        session.close()


async def _look(settings: Settings, session: AdminSession, own: OwnReplica) -> Handing:
    connection = await session.connection()
    target = await read_traits(connection)
    source = await read_source_now(settings)
    recorded = await read_recorded(settings)
    if recorded is None:
        raise NeedsPersonError(
            f"the target has no position of channel {settings.replica.channel!r}: there is nothing"
            " to hand over"
        )
    taken = await own_channels(connection, target.server)
    executed, follows = await _executed(session, target)
    handing = Handing(
        recorded,
        target,
        source,
        ReplicaAccount(
            *_where(settings.source, own),
            own.account.user if own.account else settings.source.user,
            own.account.password if own.account else settings.source.password.get_secret_value(),
        ),
        own.channel,
        executed,
        follows,
        tuple(each for each in taken if each.channel == own.channel),
    )
    refused = refusals(handing)
    if refused:
        raise NeedsPersonError("; ".join(map(str, refused)))
    return handing


def _where(source: EndpointSettings, own: OwnReplica) -> tuple[str, int]:
    if source.unix_socket is not None and not own.host:
        raise NeedsPersonError(
            "[source] unix_socket is on this machine: say with --replica-host where the target"
            " reaches the source"
        )
    return own.host or source.host, own.port or source.port


async def _executed(session: AdminSession, target: ServerTraits) -> tuple[GtidSet, str]:
    """Return what the target has executed by GTID, and on a MariaDB its gtid_slave_pos."""
    executed = await read_executed(session, target) or GtidSet()
    if not words_of(target.server).follows_variable:
        return executed, ""
    ((follows,),) = await session.query("SELECT @@GLOBAL.gtid_slave_pos")
    return executed, str(follows)


async def _filter_of_file(session: AdminSession, target: ServerTraits) -> dict[str, Value] | None:
    """Return the filter that the target has at its start, by column; None: it may not be seen."""
    if words_of(target.server).named_within:
        rows = await session.query("SHOW GLOBAL VARIABLES LIKE 'replicate%'")
        return {str(name).lower(): value for name, value in rows}
    try:
        rows = await session.query(
            "SELECT filter_name, filter_rule FROM"
            " performance_schema.replication_applier_global_filters"
            " WHERE configured_by LIKE 'STARTUP_OPTIONS%'"
        )
    except ServerError as error:
        if error.number not in NOT_ALLOWED:
            raise
        return None
    return {str(name).lower(): value for name, value in rows}


def _left_behind(recorded: Recorded) -> list[Difference]:
    """Return what the own replica would not find as mtsd has it."""
    found = []
    open_ones = sorted(".".join(each) for each in recorded.channel.mark.temporary.tables)
    if open_ones:
        named = ", ".join(open_ones[:_OPEN_TABLES])
        found.append(
            Difference(
                "temporary_tables",
                f"temporary tables are open on the source ({named}): the own replica has none of"
                " them, and stops at a statement that uses one",
            )
        )
    if recorded.prepared:
        found.append(
            Difference(
                "prepared",
                f"{recorded.prepared} XA transactions are prepared: the own replica completes them,"
                " and mtsd's record of them stays",
            )
        )
    if recorded.stopped is not None:
        found.append(
            Difference(
                "stopped",
                f"mtsd was stopped by a transaction: {recorded.stopped.message}",
            )
        )
    return found


async def _lines(settings: Settings, session: AdminSession, handing: Handing) -> list[str]:
    mark = handing.recorded.channel.mark
    place = shown(mark.gtids) if handing.by_gtid and mark.gtids else str(mark.position)
    lines = [f"mtsd is at {place}"]
    if await answering_daemon(settings) is not None:
        lines.append("mtsd runs: stop it before (systemctl disable --now mtsd)")
    if handing.recorded.skipped:
        lines.append(
            f"{len(handing.recorded.skipped)} transactions were skipped by hand on this channel"
            " (mtsd skip lists them)"
        )
    who = await readers_of(session, handing.target)
    if who:
        lines.append(who)
    if handing.unknown:
        lines.append(
            "a replica of the target that reads by GTID ends at its next connection with error"
            " 1236 unless it is told the same, stopped: SET GLOBAL gtid_purged = CONCAT('+',"
            f" GTID_SUBTRACT('{handing.unknown}', @@GLOBAL.gtid_executed))"
        )
    return lines


class _Work:
    """The tasks of a handover, which share what they find."""

    def __init__(
        self, settings: Settings, session: AdminSession, handing: Handing, watch: float
    ) -> None:
        self._settings = settings
        self._session = session
        self._handing = handing
        self._watch = watch
        self._fenced = False
        self._began = 0.0
        self.proof = ""
        self.tasks = {
            "fence": self.fence, "unfence": self.unfence, "told": self.told,
            "watch": self.watch, "come back": self.come_back, "prove": self.prove,
        }  # fmt: skip
        self._paused_ms = 0.0
        self._source: SourceNow = handing.source

    async def fence(self) -> str:
        # Interrupted, it may be there.
        self._fenced = True
        try:
            await set_fence(self._settings, OWN_REPLICA, command_words="takeover --execute")
        except NeedsPersonError:
            self._fenced = False
            raise
        now = await read_recorded(self._settings)
        if now is None or now.channel.mark != self._handing.recorded.channel.mark:
            raise NeedsPersonError("mtsd has applied more in the meantime: run this again")
        self._began = monotonic()
        return ""

    async def unfence(self) -> str:
        if self._fenced:
            await remove_fence(self._settings)
        return ""

    async def told(self) -> str:
        executed, follows = await _executed(self._session, self._handing.target)
        lacks = self._handing.lacking(executed, follows)
        if lacks:
            raise NeedsPersonError(f"the target does not have what it was told: {lacks}")
        return "read back: the target has it"

    async def watch(self) -> str:
        since = None
        while since is None or monotonic() - since < self._watch:
            channel = await self._channel()
            status = channel.status
            if status.error:
                raise NeedsPersonError(f"the target's own replica has stopped: {status.error}")
            if status.applying and status.receiving and not self._paused_ms:
                self._paused_ms = (monotonic() - self._began) * 1000
                self._source = await read_source_now(self._settings)
            caught_up = self._settings.replica.delay or self._has_caught_up(status)
            if not (status.applying and status.receiving and caught_up):
                since = None
            elif since is None:
                since = monotonic()
            await asyncio.sleep(_LOOK_S)
        return f"it has run for {self._watch:g} s without an error"

    def _has_caught_up(self, status: ReplicaStatus) -> bool:
        state = self._source.state
        if not self._paused_ms:
            return False
        if self._handing.by_gtid:
            return not count_missing(state.executed, GtidSet.parse(status.executed_gtids))
        if not state.files:
            return True
        end = state.files[-1]
        return status.executed >= Position(end.name, end.size)

    async def come_back(self) -> str:
        found = await self._found()
        if not found.by_gtid and not found.channel.status.executed.file:
            return "the own replica has applied nothing"
        start = await place_of(self._session, found)
        await set_position(self._settings, start, Meant(forward=True))
        return f"mtsd goes on after what the own replica has applied: {start}"

    async def prove(self) -> str:
        before = self._handing.recorded.channel.mark
        channel = await self._channel()
        if self._handing.by_gtid:
            has = GtidSet.parse(channel.status.executed_gtids)
            of_source = has.shared(self._source.state.executed)
            count = count_missing(of_source, before.gtids or GtidSet())
            at = f"{count:,} transactions since by the own replica, equal at GTID"
            what = f"{at} {shown(of_source)}"
        else:
            what = f"from {before.position}, now at {channel.status.executed}"
        self.proof = (
            f"handed over: {what}; pause {self._paused_ms:,.0f} ms. mtsd does not start on this"
            " channel any more: mtsd takeover takes it back"
        )
        return ""

    async def _channel(self) -> OwnChannel:
        return await find_channel(
            self._session, self._handing.target.server, self._handing.source.known
        )

    async def _found(self) -> Found:
        source = await read_source_now(self._settings)
        return Found(
            await self._channel(), self._handing.target, source, self._handing.recorded, gap=False
        )
