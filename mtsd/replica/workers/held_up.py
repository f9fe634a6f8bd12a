"""Why the target does not answer a worker: what its session waits for there, and who has that.

A backup's lock, a forgotten transaction or a long ALTER TABLE hold up whatever comes after; without
their names it looks as if mtsd were slow. The target is asked on a connection of its own, and only
while an answer has been awaited for some seconds.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mtsd.apply.position.lock_holder import sessions
from mtsd.apply.position.signs_of_life import Session
from mtsd.apply.session.family import TargetFamily
from mtsd.apply.session.lock_waits import who_waits
from mtsd.model.errors import MtsdError
from mtsd.replica.workers.target_waits import TargetWait, kind_in_words
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.neutral_session import neutral_connection

_ASKED_S: Final = 3.0
"""How long an answer is awaited before anybody asks why."""
_SILENT_S: Final = 2.0
"""How long a new session is waited for before the target counts as silent."""
_SILENT: Final = (
    "it answers no new session either; it hangs, or the network is cut: see whether anybody can log"
    " in there"
)
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 8.0
_MAX_NAMED: Final = 3
_FULL_DISK: Final = frozenset({"waiting for someone to free space", "waiting for disk space"})
"""What a MariaDB and a MySQL call it to wait for space: nobody has that, as a lock is had."""


@dataclass(frozen=True, slots=True)
class HeldUp:
    """The worker that waits longest, `since` in seconds since 1970, and why, in words."""

    worker: int
    connection: int
    since: float
    why: str


def why(
    session: int,
    seen: Mapping[int, Session],
    waits: Collection[tuple[int, int]],
    own: Collection[int] = (),
) -> str:
    """Say what a session waits for, who has that, and what to do; "" if it is seen to do nothing.

    `waits` has each session that waits for a lock, with one that has it; `own` are the daemon's.
    With 12 behind 20, an ALTER TABLE, and that one behind 18, an idle transaction, 18 is named.
    """
    there = seen.get(session)
    if there is None or there.sleeps:
        return ""
    state = there.state or there.command
    holders = sorted(_roots(session, waits))
    if not holders:
        return state + _advice(state.lower())
    first = holders[:_MAX_NAMED]
    named = ", and ".join(_in_words(each, seen.get(each), own=each in own) for each in first)
    more = f", and {len(holders) - len(first)} more" if len(holders) > len(first) else ""
    kill = "; ".join(f"KILL {each}" for each in first if each and each not in own)
    ended = f": wait until that ends, or {kill} there" if kill else ""
    return f"{state}, held up by {named}{more}{ended}"


def _advice(state: str) -> str:
    if state in _FULL_DISK:
        return ": its disk is full: free space there, on the disk that its error log names"
    if "commit" in state or "ack" in state.split():
        return ": if that lasts, see its error log (a full disk)"
    if "lock" in state or state.startswith("waiting"):
        return ": SHOW PROCESSLIST there shows who may have it, to a user with PROCESS"
    return ""


def _roots(session: int, waits: Collection[tuple[int, int]]) -> set[int]:
    """Return those that a session waits for, perhaps behind others, and that wait for nobody."""
    behind: dict[int, set[int]] = {}
    for waiting, holding in waits:
        behind.setdefault(waiting, set()).add(holding)
    reached: set[int] = set()
    ahead = [session]
    while ahead:
        new = behind.get(ahead.pop(), set()) - reached
        reached |= new
        ahead += new
    return reached - behind.keys()


def _in_words(session: int, seen: Session | None, *, own: bool) -> str:
    if not session:
        return "a prepared transaction (XA RECOVER lists it) or the server itself"
    shown = f"mtsd's own connection {session}" if own else f"connection {session}"
    if seen is None:
        return shown
    host = seen.host.rpartition(":")[0] or seen.host
    does = "idle" if seen.sleeps else f"at {kind_in_words(seen.statement.encode()) or seen.command}"
    return f"{shown} of user {seen.user!r} from {host!r}, {does} for {seen.seconds} s"


class HeldUpWatch:
    """Asks the target why a worker waits.

    `waits` returns the workers that do for so many seconds, `own` the sessions of all of them.
    """

    def __init__(
        self,
        current: CurrentEndpoint,
        family: TargetFamily,
        waits: Callable[[float], Sequence[TargetWait]],
        own: Callable[[], Collection[int]],
    ) -> None:
        self._current = current
        self._family = family
        self._waits = waits
        self._own = own
        self._found: HeldUp | None = None

    @property
    def found(self) -> HeldUp | None:
        """What holds up a worker that still waits; None if none does, or nobody knows yet."""
        found = self._found
        if found is None or all(
            wait.connection != found.connection for wait in self._waits(_ASKED_S)
        ):
            return None
        return found

    @property
    def why(self) -> str:
        """What that is, in words; "" if it is not known."""
        return "" if (found := self.found) is None else found.why

    async def run(self) -> None:
        """Look until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_FIRST_PAUSE_S)
            if not self._waits(_ASKED_S):
                self._found = None
                continue
            silent = loop.call_later(_SILENT_S, self._find_silent)
            # A target that takes no further session: others tell of that.
            with contextlib.suppress(MtsdError, OSError):
                async with neutral_connection(self._current.endpoint) as connection:
                    silent.cancel()
                    await self._look_on(connection)
            silent.cancel()
            if self._found is not None and self._found.why != _SILENT:
                self._found = None

    def _find_silent(self) -> None:
        if waits := self._waits(_ASKED_S):
            self._found = _held(_longest(waits), _SILENT)

    async def _look_on(self, connection: Connection) -> None:
        """Look again and again until no worker waits."""
        pause = _FIRST_PAUSE_S
        while waits := self._waits(_ASKED_S):
            self._found = await self._asked(connection, _longest(waits))
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        self._found = None
        await connection.quit()

    async def _asked(self, connection: Connection, wait: TargetWait) -> HeldUp | None:
        async with connection.answering():
            waits = await who_waits(connection, self._family)
            seen = await sessions(connection)
        said = why(wait.connection, seen, waits, self._own())
        return _held(wait, said) if said else None


def _longest(waits: Sequence[TargetWait]) -> TargetWait:
    return max(waits, key=lambda wait: wait.seconds)


def _held(wait: TargetWait, said: str) -> HeldUp:
    return HeldUp(wait.worker, wait.connection, time.time() - wait.seconds, said)
