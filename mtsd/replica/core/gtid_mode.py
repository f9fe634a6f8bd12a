"""What the target learns of the source's GTIDs: the setting `target.gtid`, decided for a target."""

import enum
from typing import Final

from mtsd.apply.position.executed_gtids import add_to_executed, execute_empty
from mtsd.apply.session.retry import worth_a_retry
from mtsd.apply.session.session import TargetSession
from mtsd.config.settings import GtidMode
from mtsd.model.errors import NeedsPersonError, ServerError
from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import Flavour
from mtsd.wire.connection import Connection
from mtsd.wire.family import SERVERS


class Gtids(enum.Enum):
    """What is done with the source's GTIDs."""

    OFF = "off"
    MIRROR = "mirror"
    """Added at each checkpoint to those that the target has executed."""
    PRESERVE = "preserve"
    """Each group commits under its own GTID; nothing is combined."""


WITHOUT_GTIDS = Reason(
    '[target] gtid is "{setting}", but the {server}\'s gtid_mode is not ON',
    'set gtid_mode = ON on it, or [target] gtid = "off"',
)
OTHER_GTIDS = Reason(
    '[target] gtid is "{setting}", but the source is {source} and the target is {target}, which'
    " cannot have its GTIDs",
    'set [target] gtid = "off" or "auto"',
)
ON_MARIADB = Reason(
    '[target] gtid is "{setting}", but the target is a MariaDB, which mtsd tells nothing of the'
    " source's GTIDs",
    'set [target] gtid = "auto" or "off"',
)
GTIDS_NOT_ALLOWED = Reason(
    '[target] gtid is "{setting}", but the target\'s user may not give its transactions GTIDs (set'
    " gtid_next)",
    'GRANT {privilege} ON *.* TO the user, or set [target] gtid = "off" or "auto"',
)
MIRROR_LOGGED = Reason(
    '[target] gtid is "mirror", but the target writes what mtsd applies to its own binary log:'
    " a replica of it that already has the source's GTIDs would apply everything twice",
    "set [target] binary_log = false if nothing reads the target's binary log, or [target] gtid ="
    ' "preserve" or "off"',
)


_OF_GTIDS: Final = {"mirror": "SYSTEM_VARIABLES_ADMIN", "preserve": "SESSION_VARIABLES_ADMIN"}


def decide_gtids(
    setting: GtidMode,
    source: Flavour,
    target: Flavour,
    *,
    gtid_mode: bool,
    logged: bool,
    allowed: bool = True,
) -> Gtids | Refused:
    """Decide for a source and a target, depending on whether the target's gtid_mode is ON.

    `allowed` is whether its user may give transactions their GTIDs.

    `logged` is whether it writes what is applied to a binary log: a replica of the target could
    not read past what is added without a transaction, and one that already has it would apply it
    again under other GTIDs.
    """
    has_domains = SERVERS[target].has_domains
    if setting in {"auto", "off"} and (source is not target or has_domains):
        return Gtids.OFF
    if has_domains:
        return refuse(ON_MARIADB, setting=setting)
    if source is not target:
        return refuse(OTHER_GTIDS, setting=setting, source=source.value, target=target.value)
    if setting == "auto":
        return Gtids.MIRROR if gtid_mode and allowed and not logged else Gtids.OFF
    if setting != "off" and not gtid_mode:
        return refuse(WITHOUT_GTIDS, setting=setting, server="target")
    if setting != "off" and not allowed:
        return refuse(GTIDS_NOT_ALLOWED, setting=setting, privilege=_OF_GTIDS[setting])
    if setting == "mirror" and logged:
        return refuse(MIRROR_LOGGED)
    return Gtids(setting)


def gtids_of(setting: GtidMode, source: Flavour, session: TargetSession) -> Gtids:
    """Decide for the target of a session. Raises NeedsPersonError if the setting is refused."""
    traits = session.traits
    decided = decide_gtids(
        setting,
        source,
        traits.server.flavour,
        gtid_mode=traits.gtid_mode,
        logged=session.is_logged,
        allowed=session.has_gtids or not traits.gtid_mode,
    )
    if isinstance(decided, Refused):
        raise NeedsPersonError(str(decided))
    return decided


class GtidRecorder:
    """Records the source's GTIDs up to a low-water mark on the target, as far as the mode asks."""

    def __init__(self, gtids: Gtids, connection: Connection, recorded: GtidSet) -> None:
        """Begin with a target that has `recorded` some already."""
        self._gtids = gtids
        self._connection = connection
        self._recorded = recorded

    @property
    def at_every_start(self) -> bool:
        """Whether a start records all that the position has."""
        return self._gtids is Gtids.MIRROR

    async def record(self, gtids: GtidSet) -> None:
        """Give the target the GTIDs of a set that the mode requires.

        Raises ServerError, ConnectionLostError, NeedsPersonError.
        """
        if self._gtids is Gtids.OFF:
            return
        new = gtids.minus(self._recorded)
        if not new:
            return
        if self._gtids is Gtids.MIRROR:
            try:
                await add_to_executed(self._connection, new)
            except ServerError as error:
                if worth_a_retry(error):
                    raise
                raise NeedsPersonError(
                    f"the target does not accept the source's GTIDs ([target] gtid): {error}"
                ) from error
        else:
            # Groups that had nothing to apply, or were skipped.
            await execute_empty(self._connection, new)
        self._recorded = gtids.copy()
