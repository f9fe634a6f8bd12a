"""Reads the target's keys again after definitions, for a policy that goes by them."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from mtsd.apply.tables.changed_keys import ChangedKeys
from mtsd.apply.tables.key_definitions import read_key_definitions
from mtsd.model.errors import MtsdError
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.neutral_session import neutral_connection
from mtsd.wire.traits import ServerTraits

_POLL_PERIOD_S: Final = 0.1
_POLL_PERIOD_AFTER_DEFINITION_S: Final = 0.02
_PAUSE_AFTER_ERROR_S: Final = 10.0

log = structlog.get_logger(__name__)


class KeyReadings:
    """Looks again and again whether keys are due, and reads them on a connection of its own.

    A reading may have to wait for a lock that a long ALTER TABLE holds; nothing else waits for it.
    `is_committed` tells whether a group has been applied.
    """

    def __init__(
        self,
        current: CurrentEndpoint,
        traits: ServerTraits,
        changed: ChangedKeys,
        is_committed: Callable[[int], bool],
    ) -> None:
        self._current = current
        self._traits = traits
        self._changed = changed
        self._is_committed = is_committed

    async def run(self) -> None:
        """Look until cancelled; what cannot be read now is tried again later."""
        while True:
            knows_all = self._changed.knows_all
            await asyncio.sleep(_POLL_PERIOD_S if knows_all else _POLL_PERIOD_AFTER_DEFINITION_S)
            try:
                await self._read_due()
            except (MtsdError, OSError) as error:
                log.warning(
                    "the target's keys could not be read after a definition: until that succeeds,"
                    " changes of the databases concerned are applied one after another",
                    error=str(error),
                )
                await asyncio.sleep(_PAUSE_AFTER_ERROR_S)

    async def _read_due(self) -> None:
        if not (due := self._changed.due(self._is_committed)):
            return
        async with neutral_connection(self._current.endpoint) as connection:
            read = await read_key_definitions(
                connection,
                self._traits.server.flavour,
                due,
                fold_case=self._traits.lower_case_table_names,
            )
        self._changed.learn(read, due)
