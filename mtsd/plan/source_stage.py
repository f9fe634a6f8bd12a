"""The source in a simulation: it sends the stream in pieces, as far ahead as buffers allow."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from mtsd.plan.processors import Processors
from mtsd.plan.replayed_group import ReplayedGroup
from mtsd.plan.timeline import PIECE_SENT, Timeline

_PIECE: Final = 1 << 16
"""Bytes that one read from a socket returns."""
_PIECES_AHEAD: Final = 24
"""The most pieces that may be sent but not yet read."""


class SourceStage:
    """Sends `groups`, each in `seconds`; on the daemon's `processors`, or on others if None."""

    __slots__ = (
        "_groups", "_has_ended", "_is_sending", "_next", "_processors", "_seconds", "_timeline",
        "pieces",
    )  # fmt: skip

    def __init__(
        self,
        groups: Iterable[ReplayedGroup],
        seconds: float,
        timeline: Timeline,
        processors: Processors | None,
    ) -> None:
        self._groups = iter(groups)
        self._seconds = seconds
        self._timeline = timeline
        self._processors = processors
        self.pieces: deque[deque[ReplayedGroup]] = deque()
        """Pieces that were sent but not yet read."""
        self._next: deque[ReplayedGroup] = deque()
        self._is_sending = False
        self._has_ended = False

    @property
    def is_over(self) -> bool:
        """Whether everything has been sent and read."""
        return self._has_ended and not self._is_sending and not self.pieces

    def send(self) -> None:
        """Send the next piece, unless a piece is being sent or the source is too far ahead."""
        if self._is_sending or self._has_ended or len(self.pieces) >= _PIECES_AHEAD:
            return
        piece: deque[ReplayedGroup] = deque()
        size = 0
        for replayed in self._groups:
            piece.append(replayed)
            size += replayed.length
            if size >= _PIECE:
                break
        else:
            self._has_ended = True
        if not piece:
            return
        self._next = piece
        self._is_sending = True
        spent = self._seconds * len(piece)
        if self._processors is not None:
            self._processors.run(spent, PIECE_SENT, 0, urgent=True)
        else:
            self._timeline.at(self._timeline.now + spent, PIECE_SENT, 0)

    def sent(self) -> None:
        """Record that the piece has been sent, and begin the next one."""
        self._is_sending = False
        self.pieces.append(self._next)
        self.send()

    def take(self) -> deque[ReplayedGroup]:
        """Remove and return the next piece."""
        piece = self.pieces.popleft()
        self.send()
        return piece
