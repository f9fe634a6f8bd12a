"""The named points that every wait on a server passes, so that tests can inject a fault there.

A function that waits on a server takes the keyword `reached`; production passes `nothing`.
"""

import enum
from collections.abc import Awaitable, Callable


class FaultPoint(enum.StrEnum):
    """Where a fault can be injected: just before what the name says, or after it."""

    BEFORE_CONNECT_TARGET = "before_connect_target"
    BEFORE_FENCING = "before_fencing"
    AFTER_FENCING = "after_fencing"
    BEFORE_RECOVERY_WRITE = "before_recovery_write"
    AFTER_RECOVERY_WRITE = "after_recovery_write"
    BEFORE_CONNECT_SOURCE = "before_connect_source"
    BEFORE_DUMP = "before_dump"
    AFTER_READ = "after_read"
    BEFORE_BUNDLE = "before_bundle"
    BUNDLE_SENT = "bundle_sent"
    AFTER_BUNDLE = "after_bundle"
    BEFORE_REPLAY = "before_replay"
    BEFORE_CHUNK = "before_chunk"
    BEFORE_COMMIT = "before_commit"
    COMMIT_SENT = "commit_sent"
    AFTER_COMMIT = "after_commit"
    BEFORE_IN_DOUBT = "before_in_doubt"
    AFTER_IN_DOUBT = "after_in_doubt"
    BEFORE_STATEMENT = "before_statement"
    STATEMENT_SENT = "statement_sent"
    AFTER_STATEMENT = "after_statement"
    BEFORE_SETTLED = "before_settled"
    AFTER_SETTLED = "after_settled"
    BEFORE_CHECKPOINT = "before_checkpoint"
    AFTER_CHECKPOINT = "after_checkpoint"
    BEFORE_STOP_CHECKPOINT = "before_stop_checkpoint"


FaultHook = Callable[[FaultPoint], Awaitable[None]]
"""Called at each point: a test's hook may wait, raise, or kill the process there."""


async def nothing(_point: FaultPoint) -> None:
    """Pass the point."""
