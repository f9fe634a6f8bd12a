"""Semi-synchronous replication of a run: acknowledges what is applied, withdraws and returns."""

import asyncio

import structlog

from mtsd.replica.core.coordinator import Coordinator
from mtsd.source.semi_sync import SemiSync, Turn
from mtsd.source.stream import SourceStream

_LOOKS = 10
"""Within the limit."""

log = structlog.get_logger(__name__)


class SemiSyncWatch:
    """Connects what the coordinator knows is applied with what the source waits for."""

    def __init__(self, semi_sync: SemiSync, coordinator: Coordinator, stream: SourceStream) -> None:
        self._semi_sync = semi_sync
        self._stream = stream
        self._time = asyncio.get_running_loop().time
        coordinator.after_mark = self._applied

    async def run(self) -> None:
        """Look whether the source has waited for too long, until cancelled."""
        while True:
            await asyncio.sleep(self._semi_sync.limit / _LOOKS)
            turn = self._semi_sync.turn(self._stream.received.next_number - 1, self._time())
            if turn is Turn.WITHDRAW:
                log.warning(
                    "the source has waited for an acknowledgement for longer than semi_sync_limit:"
                    " withdrawn, it no longer counts this replica",
                    limit_s=self._semi_sync.limit, source=str(self._stream.endpoint),
                )  # fmt: skip
            elif turn is Turn.RETURN:
                log.info("acknowledges again", source=str(self._stream.endpoint))
            if turn is not None:
                self._stream.connect_anew()

    def _applied(self, number: int) -> None:
        position = self._semi_sync.applied(number, self._time())
        if position is not None:
            self._stream.acknowledge(position)
