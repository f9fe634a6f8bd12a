"""A max_allowed_packet that a person has raised on the target while sessions are open.

A session keeps the one that it began with, so only sessions that are opened now may send more: to
refuse what is too large for the old ones would ask a person for what has been done already.
"""

import contextlib
from typing import Final

from mtsd.apply.session.session import TargetSession
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ConnectionLostError, MtsdError
from mtsd.wire.neutral_session import neutral_connection

OVER_THE_LIMIT: Final = frozenset({ER.NET_PACKET_TOO_LARGE, ER.WARN_ALLOWED_PACKET_OVERFLOWED})
"""Errors of what is larger than max_allowed_packet."""


async def require_latest_limit(session: TargetSession) -> None:
    """Raise ConnectionLostError if a new session may send larger statements than this one.

    A connection of its own asks, because the session may be in the middle of anything. Nothing is
    raised where that does not succeed: what is too large is told then.
    """
    latest = 0
    endpoint = session.connection.endpoint
    with contextlib.suppress(MtsdError):
        async with neutral_connection(endpoint) as connection, connection.answering():
            ((value,),) = await connection.query(b"SELECT @@session.max_allowed_packet")
            latest = literals.number(value)
    if latest > session.traits.max_allowed_packet:
        raise ConnectionLostError(
            "target", f"its max_allowed_packet has been raised to {latest}, for new sessions"
        )
