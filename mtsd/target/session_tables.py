"""The temporary tables of the source's threads that one session of the target has."""

from mtsd.model.temporary_tables import TableName, TemporaryUse
from mtsd.target.session import TargetSession


class SessionTables:
    """What the session has of each thread, by the thread's id, as far as this run has created it.

    It may have tables that their thread does not: of a thread with the same id before the source's
    restart, or of an attempt that has failed.
    """

    def __init__(self, session: TargetSession) -> None:
        self._session = session
        self._has: dict[int, frozenset[TableName]] = {}

    async def use(self, use: TemporaryUse) -> None:
        """Get ready for a group, perhaps again: drop what its thread does not have before it."""
        thread_id = use.thread[1]
        has = self._has.get(thread_id, frozenset())
        self._has[thread_id] = (has & use.before) | use.created
        if stale := has - use.before:
            await self._session.drop_temporary(thread_id, stale)

    def used(self, use: TemporaryUse) -> None:
        """Note that the group has been applied."""
        left = self._has.pop(use.thread[1], frozenset()) & use.left
        if left:
            self._has[use.thread[1]] = left
