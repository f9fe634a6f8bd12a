"""Says in the log that workers wait long for the target: which, how long, and at what.

A target whose disk stands still, or whose tables somebody has locked, answers everything else, and
one worker that waits holds whatever comes after its group: without a word it looks as if the daemon
itself had stopped.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from mtsd.apply.session.obstacle import Obstacles, obstacles_here
from mtsd.binlog.sql.tokenizer import tokens_of
from mtsd.model.statement_text import StatementText, TokenKind

log = structlog.get_logger(__name__)

_POLL_PERIOD_S = 1.0
_FIRST_WORD_S = 10.0
_NEXT_WORD_S = 30.0
_MAX_SHOWN = 8
_UNKNOWN = "SHOW PROCESSLIST there tells what for, or its error log (a full disk)"
_MORE_TELLS = frozenset({
    b"ALTER", b"BEGIN", b"CREATE", b"DROP", b"LOAD", b"RENAME", b"SHOW", b"XA",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class TargetWait:
    """A worker that waits for the target's answer: since `seconds`, to a statement of that kind.

    `connection` is its session there. `group` is the first that it has begun and that has not
    committed, 0 while it applies a streamed one; `kind` and `databases` are the group's.
    """

    worker: int
    connection: int
    seconds: float
    statement: str
    group: int
    kind: str
    databases: tuple[str, ...]


def kind_in_words(packet: bytes, answered: int = 0) -> str:
    """Return the words that tell the kind of a statement: the one after so many of a packet."""
    words: list[bytes] = []
    left = answered
    for token in tokens_of(StatementText(packet)):
        if left:
            left -= token.text == b";"
        elif token.kind is not TokenKind.WORD:
            break
        else:
            words.append(token.text)
            if len(words) > 1 or words[0] not in _MORE_TELLS:
                break
    return b" ".join(words).decode("ascii", "replace")


class TargetWaits:
    """Looks at the workers again and again; `waits` returns those that wait for so many seconds."""

    def __init__(
        self,
        waits: Callable[[float], Sequence[TargetWait]],
        workers: int,
        why: Callable[[], str] = str,
    ) -> None:
        """`why` returns what the one that waits longest is known to wait for, in words."""
        self._waits = waits
        self._workers = workers
        self._why = why
        self._reported = False
        self._next = 0.0
        self._obstacles = obstacles_here() or Obstacles()

    async def run(self) -> None:
        """Look until cancelled."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                await asyncio.sleep(_POLL_PERIOD_S)
                self.report(clock())
        finally:
            self._obstacles.is_wait_told = False

    def report(self, now: float) -> None:
        """Log what there is to say; `now` is the time of a monotonic clock, in seconds."""
        long = list(self._waits(_FIRST_WORD_S))
        self._obstacles.is_wait_told = bool(long)
        if not long:
            if self._reported:
                log.info("the target answers the workers again")
            self._reported = False
            return
        if self._reported and now < self._next:
            return
        self._reported = True
        self._next = now + _NEXT_WORD_S
        long.sort(key=lambda wait: -wait.seconds)
        log.warning(
            "workers wait for the target's answer",
            because=self._why() or _UNKNOWN,
            waiting=len(long), workers=self._workers, longest_s=round(long[0].seconds),
            at=[_described(wait) for wait in long[:_MAX_SHOWN]],
        )  # fmt: skip


def _described(wait: TargetWait) -> dict[str, object]:
    described: dict[str, object] = {
        "worker": wait.worker,
        "connection": wait.connection,
        "waited_s": round(wait.seconds),
        "statement": wait.statement,
    }
    if wait.group:
        databases = ",".join(wait.databases)
        described |= {"group": wait.group, "kind": wait.kind, "databases": databases}
    return described
