"""When a source is told that its transactions are on the target: semi-synchronous replication.

Pure. A source that waits marks the events whose end it wants acknowledged. `SemiSync` remembers
the group that ends there, and says what to acknowledge when all groups up to it are on the target,
not when they have arrived: the server's own replica acknowledges what it has written to its relay
log. Who reads the target sees what the source's client was told is committed.

Example: groups 1 to 3 arrive, and the source waits for 1 and 3. The target commits 2: nothing is
acknowledged. It commits 1: the end of 1 is. It commits 3: the end of 3 is.

A source takes the place from which a dump begins for acknowledged. So a connection asks to be
waited for only when everything that was received before is on the target (`begins`).

What keeps the target from committing keeps the source's clients waiting. So when the oldest has
waited for longer than a limit, this replica withdraws: it reads on over a connection that the
source does not count. When it is less than half the limit behind, and has been withdrawn for the
limit, it returns.
"""

import enum
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from mtsd.model.group import Group, GroupClosed, LargeGroup, PositionReached, StreamItem
from mtsd.model.position import Position

SemiSyncState = Literal["off", "not asked", "acknowledging", "withdrawn", "not connected"]
"""not asked: the source cannot wait for a replica."""
BOUNDS_S: Final[tuple[float, ...]] = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""Upper bounds of the times that are counted together; what took longer is counted after them."""
_OFFSETS = 1 << 32
"""An event says where it ends modulo this."""
_MAX_ASKED = 1024
"""Ends that no group has: a source that has given up waiting asks in the middle of groups too."""


class Acknowledged:
    """What has been acknowledged since the daemon began, over all connections."""

    def __init__(self) -> None:
        self.latencies = [0] * (len(BOUNDS_S) + 1)
        """Transactions by how long after their arrival that was, as for BOUNDS_S."""
        self.latency_s = 0.0
        """The sum of these times."""
        self.withdrawals = 0

    def note(self, took: float) -> None:
        """Note that a transaction was acknowledged so many seconds after it had arrived."""
        self.latencies[bisect_left(BOUNDS_S, took)] += 1
        self.latency_s += took


class Turn(enum.Enum):
    """Why the connection to the source has to be made anew."""

    WITHDRAW = "withdraw"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class _Awaited:
    number: int
    end: Position
    since: float


class SemiSync:
    """What a source waits for. Times are in seconds, of a clock that is never set."""

    def __init__(self, limit: float, applied: int, acknowledged: Acknowledged) -> None:
        """`limit` in seconds; `applied` is the number of the last group that is on the target."""
        self.limit = limit
        self.acknowledged = acknowledged
        self._applied = applied
        self._newest = applied
        self._state: SemiSyncState = "not connected"
        self._withdrawn_since: float | None = None
        self._asked: deque[int] = deque(maxlen=_MAX_ASKED)
        self._awaited: deque[_Awaited] = deque()
        self._arrived: deque[tuple[int, float]] = deque()
        """Groups, and when each was the newest that had arrived."""

    @property
    def state(self) -> SemiSyncState:
        """What the source is told."""
        return self._state if self._withdrawn_since is None else "withdrawn"

    @property
    def is_withdrawn(self) -> bool:
        """Whether the source must not count this replica."""
        return self._withdrawn_since is not None

    def begins(self, next_number: int, now: float, deadline: float) -> bool:
        """Return whether the source may wait for what follows: all before is on the target.

        If that has not come by the `deadline`, this replica withdraws.
        """
        if not self.is_withdrawn and self._applied < next_number - 1 and now > deadline:
            self.withdraw(now)
        return not self.is_withdrawn and self._applied >= next_number - 1

    def withdraw(self, now: float) -> None:
        """Let the source not count this replica, from the next connection on."""
        if self._withdrawn_since is None:
            self.acknowledged.withdrawals += 1
        self._withdrawn_since = now

    def connected(self, *, asked: bool) -> None:
        """Note a new connection; `asked`: the source marks what it waits for."""
        self._state = "acknowledging" if asked else "not asked"

    def disconnected(self) -> None:
        """Note that the connection has ended: what it has asked for need not be answered."""
        self._state = "not connected"
        self._asked.clear()
        self._awaited.clear()

    def asks(self, ends: Iterable[int]) -> None:
        """Note where the events end that have arrived, and that the source waits for."""
        self._asked.extend(ends)

    def noted(self, items: Iterable[StreamItem], now: float) -> Iterator[StreamItem]:
        """Yield the items that events have become, and note which of them the source waits for."""
        for item in items:
            group = item.group if isinstance(item, GroupClosed | LargeGroup) else item
            if isinstance(group, Group):
                self._newest = group.number
                self._note(group.end, now)
            elif isinstance(group, PositionReached):
                self._note(group.end, now)
            yield item

    def _note(self, end: Position, now: float) -> None:
        if end.offset % _OFFSETS not in self._asked:
            return
        while self._asked.popleft() != end.offset % _OFFSETS:
            pass
        self._awaited.append(_Awaited(self._newest, end, now))

    def applied(self, number: int, now: float) -> Position | None:
        """Note that all groups up to a number are on the target; return what to acknowledge."""
        self._applied = number
        last: Position | None = None
        while self._awaited and self._awaited[0].number <= number:
            awaited = self._awaited.popleft()
            self.acknowledged.note(now - awaited.since)
            last = awaited.end
        return last

    def turn(self, newest: int, now: float) -> Turn | None:
        """Decide whether to withdraw or to return; `newest` is the last group that has arrived.

        To be asked several times within the limit.
        """
        self._arrived.append((newest, now))
        while self._arrived and self._arrived[0][0] <= self._applied:
            self._arrived.popleft()
        if self._withdrawn_since is None:
            if not self._awaited or now - self._awaited[0].since <= self.limit:
                return None
            self.withdraw(now)
            return Turn.WITHDRAW
        behind = now - self._arrived[0][1] if self._arrived else 0.0
        if now - self._withdrawn_since < self.limit or behind > self.limit / 2:
            return None
        self._withdrawn_since = None
        return Turn.RETURN
