"""Whether transactions can be split into branches on a target."""

from typing import Final

from mtsd.apply.branches.branches import why_not
from mtsd.apply.session.session import TargetSession
from mtsd.apply.session.xa import prepared_xids
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.wire.understood import understood

ON_MARIADB: Final = Reason(
    "split_transactions needs a MySQL as the target: a session of a MariaDB keeps what it"
    " has prepared",
    'set [replica] split_transactions = "off"',
)
NOT_LISTED: Final = Reason(
    "split_transactions: a start after a crash has to list what is prepared, which {user!r}"
    " may not ({error})",
    "GRANT XA_RECOVER_ADMIN on the target",
)


@understood("target")
async def why_not_split(session: TargetSession) -> Refused | None:
    """Return why transactions cannot be split by row; None if they can.

    Raises ServerError, ConnectionLostError.
    """
    if not session.family.splits:
        return refuse(ON_MARIADB)
    if refused := why_not(session.traits, logged=session.is_logged):
        return refused
    try:
        await prepared_xids(session.connection)
    except ServerError as error:
        if error.number != ER.XAER_RMERR:
            raise
        return refuse(NOT_LISTED, user=session.connection.endpoint.user, error=error)
    return None
