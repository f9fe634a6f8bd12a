"""Reads what the target's own binary log shows of groups in doubt, as a start would."""

from collections.abc import Mapping
from contextlib import suppress

from mtsd.apply.position.position_tables import KNOWN_VERSIONS, PositionTables
from mtsd.model.errors import NeedsPersonError
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Refused
from mtsd.operations.check.decisions import judged
from mtsd.operations.check.facts import PositionFacts, ServerFacts
from mtsd.replica.recovery.evidence import in_logs
from mtsd.replica.recovery.verdict import Verdict
from mtsd.wire.connection import Connection


async def read_in_logs(
    connection: Connection,
    tables: PositionTables,
    server: ServerFacts,
    position: PositionFacts,
    files: tuple[str, ...] | None,
) -> Mapping[int, Verdict | Refused]:
    """Return what the `files` show, by number; nothing while a daemon is running.

    Groups for which they may not be read are left out. Raises ServerError, ConnectionLostError.
    """
    channel = position.channel
    if channel is None or position.daemon is not None or files is None:
        return {}
    if channel.schema_version not in KNOWN_VERSIONS:
        return {}
    known = GtidSet.parse(server.variables.get("gtid_executed", ""))
    verdicts: dict[int, Verdict | Refused] = {}
    for doubt, judgement in judged(channel, known, files):
        with suppress(NeedsPersonError):
            verdicts[doubt.number] = await in_logs(connection, tables, doubt, judgement)
    return verdicts
