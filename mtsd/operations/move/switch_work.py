"""What the steps of a switch do themselves: they ask both servers, and both daemons."""

import asyncio
import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from mtsd.config import Settings
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.move.admin import AdminSession
from mtsd.operations.move.daemons import DaemonOf, until
from mtsd.operations.move.fence import remove_fence, set_fence
from mtsd.operations.move.log_end import LogEnd, read_end
from mtsd.operations.move.switching import BY_A_SWITCH, TILL_A_SWITCH, Opened
from mtsd.operations.move.writers import ServerSession, read_sessions, read_writers, unstoppable
from mtsd.operations.position import Meant, reset_position, set_position
from mtsd.operations.recorded import read_fence_of, read_recorded
from mtsd.operations.stopped_channel import StoppedChannel
from mtsd.replica.guards.executed_beyond import count_missing
from mtsd.wire.traits import ServerTraits

_LOOK_S: Final = 0.01
_LOOK_AT_TRANSACTIONS_S: Final = 0.12
"""A server reads information_schema.INNODB_TRX anew only if nobody has read it for 0.1 s: whoever
looks more often sees a transaction for ever that has ended (manual, "InnoDB INFORMATION_SCHEMA
Transaction and Locking Information")."""
_FORGET_S: Final = 5.0
_ENDS_S: Final = 2.0
_MEANT: Final = Meant(back=True, forward=True)


@dataclass(frozen=True, slots=True)
class SwitchWishes:
    """What a person has said about a switch, beside what holds for every move.

    `kill` ends the sessions that keep the source from becoming quiet, after `grace` seconds.
    """

    back: bool = False
    max_lag: float = 5.0
    longest: float = 5.0
    """Seconds that a statement or a transaction of a writer may have run before a switch."""
    grace: float = 1.0
    kill: bool = False
    events: bool = False
    put_back: bool = False


async def read_opened(session: AdminSession) -> Opened:
    """Query whether a server is read only. Raises ServerError, ConnectionLostError."""
    rows = await session.query(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only')"
    )
    found = {str(name).lower(): str(value) for name, value in rows}
    above = found.get("super_read_only")
    return Opened(found["read_only"] != "OFF", None if above is None else above == "ON")


class SwitchWork:
    """The tasks of a switch, which share what they find."""

    def __init__(
        self,
        forth: DaemonOf,
        back: DaemonOf,
        sessions: tuple[AdminSession, AdminSession],
        traits: tuple[ServerTraits, ServerTraits],
        wishes: SwitchWishes,
    ) -> None:
        self._forth = forth
        self._back = back
        self._source, self._target = sessions
        self._traits = traits
        self._wishes = wishes
        self.privileged: frozenset[str] = frozenset()
        """Users, quoted, who may write to a server that is read only, and must not be there."""
        self._began = 0.0
        self._end: LogEnd | None = None
        # What may have been done, even if it was interrupted.
        self._stopping = False
        self._fencing = False
        self._beginning = False
        self._starting = False
        self._had_position = False
        self.proof = ""
        self.tasks = {
            "rehearse": self._rehearse, "cut off": self._cut_off, "applied": self._applied,
            "quiet": self._quiet, "stop": self._stop, "fence": self._fence,
            "unfence": self._unfence, "restart": self._restart, "begin": self._begin,
            "start back": self._start_back, "wake": self._wake, "stop back": self._stop_back,
            "events gone": self._events_gone,
            "forget back": self._forget_back, "goes on": self._goes_on, "prove": self._prove,
        }  # fmt: skip

    async def assume_all(self) -> None:
        """Take it that a former command has done everything: it was killed.

        Raises ServerError, ConnectionLostError.
        """
        self._stopping = self._fencing = self._starting = True
        # Without one there is nothing that could begin.
        self._had_position = self._beginning = await read_recorded(self._way_back) is not None

    @property
    def is_back(self) -> bool:
        """Whether it is the second of two switches, which leads back."""
        return self._wishes.back

    @property
    def _way_there(self) -> Settings:
        return self._forth.replication.settings

    @property
    def _way_back(self) -> Settings:
        return self._back.replication.settings

    async def _rehearse(self) -> str:
        self._had_position = await read_recorded(self._way_back) is not None
        end = await read_end(self._target, self._traits[1])
        await set_position(self._way_back, end.start(), _MEANT, dry_run=True)
        # One that stands by would begin as soon as a position is set.
        if await self._back.status() is None:
            self._beginning = True
            await set_position(self._way_back, end.start(), _MEANT)
        # Also of one that stands by: it tells which way the switch went that is to be put back.
        await self._fence_back()
        return ""

    async def _fence_back(self) -> None:
        words = self._command(back=self._wishes.back)
        await set_fence(self._way_back, TILL_A_SWITCH, command_words=words)

    def _command(self, *, back: bool) -> str:
        """Return the words of a switch in one of the directions: which file is which stays."""
        files = [each.replication.config for each in (self._forth, self._back)]
        config, reverse = reversed(files) if self._wishes.back else files
        words = ["switchover", *["--back"] * back]
        return shlex.join([*words, f"--config={config}", f"--reverse-config={reverse}"])

    async def _start_back(self) -> str:
        self._starting = True
        if await self._back.status() is None:
            self._back.start()
        await until(self._back.stands_by)
        self._began = monotonic()
        return ""

    async def _cut_off(self) -> str:
        writers = await read_writers(self._source)
        return await self._kill(writers.running_for(self._wishes.longest))

    async def _applied(self) -> str:
        self._end = await read_end(self._source, self._traits[0])
        await self._wait_for(self._forth, self._end)
        return f"the target has all up to {self._end}"

    async def _wait_for(self, daemon: DaemonOf, end: LogEnd) -> None:
        async def has_all() -> bool:
            status = await daemon.status()
            if status is None or status.state == "failed":
                why = "" if status is None else f": {status.last_error}"
                raise NeedsPersonError(f"the daemon of {daemon.replication.config} has ended{why}")
            place = status.executed
            gtids = GtidSet.parse(place.gtid) if place.gtid else None
            return not end.lacking_in(gtids, Position(place.file, place.pos))

        await until(has_all)

    async def _quiet(self) -> str:
        deadline = monotonic() + self._wishes.grace
        while True:
            writers = await read_writers(self._source)
            self._require_stoppable(writers.sessions)
            left = writers.open
            if not left:
                return ""
            if monotonic() > deadline:
                if self._wishes.kill:
                    return await self._kill(left)
                raise NeedsPersonError(
                    f"{len(left)} transactions are left open on the source, and keep their locks:"
                    f" {left[0]}; --kill ends them"
                )
            await asyncio.sleep(_LOOK_AT_TRANSACTIONS_S)

    def _require_stoppable(self, sessions: Sequence[ServerSession]) -> None:
        if came := unstoppable(sessions, self.privileged):
            raise NeedsPersonError("; ".join(map(str, came)))

    async def _kill(self, sessions: Sequence[ServerSession]) -> str:
        for each in sessions:
            with contextlib.suppress(ServerError):
                # It may have ended by itself.
                await self._source.query(f"KILL {each.id}")
        return "; ".join(f"killed {each}" for each in sessions)

    async def _stop(self) -> str:
        self._stopping = True
        await self._forth.stop()
        return ""

    async def _fence(self) -> str:
        now = await read_end(self._source, self._traits[0])
        if now != self._end:
            raise NeedsPersonError(
                f"somebody has written to the source although it is read only, after {self._end}:"
                " an account with the right to do so"
            )

        def has_all(channel: StoppedChannel) -> None:
            if channel.row is None:
                raise NeedsPersonError("the position of the replication is gone")
            mark = channel.row.mark
            lacks = now.lacking_in(mark.gtids, mark.position)
            if lacks or channel.in_doubt or channel.executed:
                raise NeedsPersonError(
                    "the target does not have all of the source:"
                    f" {lacks or 'something is in doubt'}"
                )

        self._fencing = True
        words = self._command(back=not self._wishes.back)
        await set_fence(self._way_there, BY_A_SWITCH, command_words=words, require=has_all)
        return f"equal at {now}"

    async def _unfence(self) -> str:
        if self._stopping:
            # Where the stop has not ended, nothing can be started.
            await self._forth.stop()
        if self._fencing:
            await remove_fence(self._way_there)
        return ""

    async def _restart(self) -> str:
        if self._stopping:
            self._forth.start()
        return ""

    async def _goes_on(self) -> str:
        if self._stopping:
            await until(self._forth.runs_again)
        return ""

    async def _begin(self) -> str:
        end = await read_end(self._target, self._traits[1])
        self._beginning = True
        await set_position(self._way_back, end.start(), _MEANT)
        return f"it begins at {end}"

    async def _wake(self) -> str:
        await self._back.wake()
        await until(self._back.runs)
        end = await read_end(self._target, self._traits[1])
        await self._wait_for(self._back, end)
        if not (await read_opened(self._source)).read_only:
            raise NeedsPersonError(
                "the source is not read only any more: it was started again, or somebody has set"
                " that"
            )
        # Who came back since the first look, after an error, would go on writing there: now that
        # the way back may write, nothing else keeps such an account from it.
        self._require_stoppable(await read_sessions(self._source))
        return "it runs, and has caught up"

    async def _events_gone(self) -> str:
        await self._wait_for(self._back, await read_end(self._target, self._traits[1]))
        return ""

    async def _stop_back(self) -> str:
        if self._starting:
            await self._back.stop()
        return ""

    async def _forget_back(self) -> str:
        if not self._beginning or await read_recorded(self._way_back) is None:
            return ""
        if await read_fence_of(self._way_back) is None:
            await self._fence_back()
        if self._had_position:
            return ""
        try:
            async with asyncio.timeout(_FORGET_S):
                await reset_position(self._way_back)
        except (TimeoutError, ServerError, NeedsPersonError) as error:
            # Somebody locks its server. What is fenced off harms nobody. What was given up ends
            # only now, and so long holds the lock that a daemon would.
            await asyncio.sleep(_ENDS_S)
            why = str(error) or "its server does not let mtsd write now"
            return f"its position stays, fenced off: {why}"
        return "it has no position again"

    async def _prove(self) -> str:
        milliseconds = (monotonic() - self._began) * 1000
        end = self._end
        if end is None:
            raise NeedsPersonError("nothing was compared")
        count = (
            "" if end.gtids is None else f"{count_missing(end.gtids, GtidSet()):,} transactions, "
        )
        self.proof = (
            f"switched over: {count}equal at {end}, pause {milliseconds:,.0f} ms;"
            f" {self._back.replication.config.name} leads back"
        )
        return (
            "this lasts until a server's next start: write read_only into the option file of the"
            " source, and remove it from that of the target"
        )
