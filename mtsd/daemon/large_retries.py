"""Large groups that have failed and are read again from the source: how often, and when."""

from typing import Final

import structlog

from mtsd.apply.session.obstacle import Obstacles, obstacle_of, obstacle_pause
from mtsd.model.errors import ServerError
from mtsd.replica.ways.streamed_failures import StreamedGroupError, streamed
from mtsd.wire.backoff import Backoff

log = structlog.get_logger(__name__)

_LONGEST_PAUSE_S: Final = 60.0
"""Each attempt reads the whole group from the source again."""


class LargeGroupRetries:
    """What the process keeps of the failures of large groups, over its runs."""

    def __init__(self, obstacles: Obstacles) -> None:
        self._obstacles = obstacles
        self._retried: StreamedGroupError | None = None
        """The large group that is applied again."""
        self._attempts: dict[int, int] = {}
        self.unsplit = 0
        """Up to this number, streamed groups are not split: it has turned out to be impossible."""

    def retried_after(self, applied: int) -> StreamedGroupError | None:
        """Return why a group is applied again, unless the groups `applied` are past it."""
        if self._retried is not None and applied >= self._retried.number:
            self._retried = None
        return self._retried

    def pause(self, error: StreamedGroupError, retries: int, backoff: Backoff) -> float | None:
        """Return how long to wait before a large group is read again; None: it is given up."""
        self._retried = error
        attempts = self._attempts.get(error.number, 0) + (not error.cannot_be_split)
        self._attempts = {error.number: attempts}
        cause = error.error
        if isinstance(cause, ServerError) and obstacle_of(cause):
            pause = obstacle_pause(max(attempts, 1), _LONGEST_PAUSE_S)
            self._obstacles.met(streamed(error.number), cause, pause)
            return pause
        self._obstacles.left(streamed(error.number))
        if error.cannot_be_split:
            self.unsplit = error.number
        elif attempts > retries:
            return None
        # Its attempts are counted, and no server is to be spared.
        backoff.reset()
        pause = backoff.next_pause()
        log.warning("replication interrupted", error=str(error), again_in_s=round(pause, 2))
        return pause
