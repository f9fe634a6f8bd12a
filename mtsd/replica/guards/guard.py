"""Looks at both servers, again and again, for what would damage data without an error.

At the start, each time that the source is connected, and every `CHECK_PERIOD_S` on the session of
the channel, which no worker uses. Between two looks somebody may start the target's own replica: up
to the next one both apply.
"""

from typing import Final

import structlog

from mtsd.apply.session.retry import insist
from mtsd.model.outcome.findings import Findings
from mtsd.model.server import ServerVersion
from mtsd.replica.guards.circles import read_circle
from mtsd.replica.guards.lenient_target import read_leniency
from mtsd.replica.guards.new_triggers import NewTriggers
from mtsd.replica.guards.own_replica import KnownServer, read_beside
from mtsd.source.handshake import SourceSession
from mtsd.wire.connection import Connection

CHECK_PERIOD_S: Final = 5.0
_TIMEOUT_S: Final = 30.0

log = structlog.get_logger(__name__)


class Guard:
    """Raises NeedsPersonError for what stops the replica; the rest are its `warnings`.

    `connection` is the channel's session on `target`, which is of the version `version`. `source`
    is what is known of the source before it is connected. `triggers` is there if rows are applied
    as SQL.
    """

    def __init__(
        self,
        connection: Connection,
        version: ServerVersion,
        target: KnownServer,
        source: KnownServer,
        *,
        triggers: NewTriggers | None,
        preserves: bool,
    ) -> None:
        self._connection = connection
        self._version = version
        self._target = target
        self._source = source
        self._triggers = triggers
        self._preserves = preserves
        self._of_target = Findings()
        self._of_source = Findings()
        self.warnings: tuple[str, ...] = ()
        """What was found at the last look, and does not stop the replica."""
        self.is_due = False
        """Whether to look at the target without waiting for the period to pass."""

    async def check_target(self) -> None:
        """Look at the target. Raises NeedsPersonError, ServerError, ConnectionLostError."""
        self.is_due = False
        async with self._connection.answering(_TIMEOUT_S):
            findings = await insist(self._connection, self._found_on_target)
        findings.require()
        self._of_target = findings
        self._log_findings()

    async def check_source(self, session: SourceSession) -> None:
        """Look at a source that was connected. Raises as `check_target` does."""
        traits = session.traits
        endpoint = session.connection.endpoint
        self._source = KnownServer(traits.uuid, traits.server_id, endpoint.host, endpoint.port)
        async with session.connection.answering(_TIMEOUT_S):
            findings = await insist(
                session.connection,
                lambda: read_circle(
                    session.connection, traits.server, self._target, preserves=self._preserves
                ),
            )
        findings.require()
        self._of_source = findings
        self._log_findings()
        # Only now is it known which server that is, or that it is the same one.
        self.is_due = True

    async def _found_on_target(self) -> Findings:
        if self._triggers is not None:
            await self._triggers.check(self._connection)
        beside = await read_beside(self._connection, self._version, self._source)
        return beside | await read_leniency(
            self._connection, self._version.flavour, by_binlog=self._triggers is None
        )

    def _log_findings(self) -> None:
        """Log what is new among the warnings, and what has gone."""
        former = self.warnings
        self.warnings = tuple(map(str, (self._of_target | self._of_source).warns))
        for warning in self.warnings:
            if warning not in former:
                log.warning("beside mtsd", warning=warning)
        for warning in former:
            if warning not in self.warnings:
                log.info("no longer beside mtsd", warning=warning)
