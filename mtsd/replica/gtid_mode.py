"""What the target learns of the source's GTIDs: the setting `target.gtid`, decided for a target."""

import enum

from mtsd.config.settings import GtidMode
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.target.executed_gtids import add_to_executed, execute_empty
from mtsd.target.session import TargetSession
from mtsd.wire.connection import Connection


class Gtids(enum.Enum):
    """What is done with the source's GTIDs."""

    OFF = "off"
    MIRROR = "mirror"
    """Added to those that the target has executed, at each checkpoint."""
    PRESERVE = "preserve"
    """Each group commits under its own; nothing is combined."""


def gtids_of(mode: GtidMode, session: TargetSession) -> Gtids:
    """Decide for the target of a session.

    Raises NeedsPersonError where the target has no GTIDs and shall learn the source's.
    """
    if mode in {"mirror", "preserve"} and not session.traits.gtid_mode:
        raise NeedsPersonError(
            f'[target] gtid is "{mode}", and the target has gtid_mode other than ON: turn it on'
            ' there, or set [target] gtid = "off"'
        )
    if mode == "auto":
        # A replica behind the target could not read past what is added without a transaction.
        mirrors = session.traits.gtid_mode and not session.is_logged
        return Gtids.MIRROR if mirrors else Gtids.OFF
    return Gtids(mode)


class ToldGtids:
    """Tells the target of the source's GTIDs up to a low-water mark."""

    def __init__(self, gtids: Gtids, connection: Connection, told: GtidSet) -> None:
        """`told` is what need not be told any more."""
        self._gtids = gtids
        self._connection = connection
        self._told = told

    async def tell(self, gtids: GtidSet) -> None:
        """Make the target's executed GTIDs hold what the mode wants of a set.

        Raises ServerError, ConnectionLostError, NeedsPersonError.
        """
        if self._gtids is Gtids.OFF:
            return
        new = gtids.minus(self._told)
        if not new:
            return
        if self._gtids is Gtids.MIRROR:
            try:
                await add_to_executed(self._connection, new)
            except ServerError as error:
                raise NeedsPersonError(
                    f"the target does not take the source's GTIDs ([target] gtid): {error}"
                ) from error
        else:
            # Groups that had nothing to apply, or were skipped.
            await execute_empty(self._connection, new)
        self._told = gtids.copy()
