"""Watches that the source does not begin to use the domain that mtsd writes in on a MariaDB."""

import structlog

from mtsd.apply.session.own_domain import shared_domain
from mtsd.apply.session.session import TargetSession
from mtsd.model.errors import NeedsPersonError
from mtsd.model.gtid import GtidSet

log = structlog.get_logger(__name__)


class DomainWatch:
    """Is shown what the source has executed, whenever there may be a new domain in it.

    `session` is one of those that write on the target.
    """

    def __init__(self, session: TargetSession) -> None:
        self._domain = session.domain
        self._may_set = session.sets_domain
        self._strict = session.traits.gtid_strict_mode
        self._warned = False

    def check(self, of_source: GtidSet) -> None:
        """Raise NeedsPersonError if the domain is shared and the target is strict; else warn once.

        Without strict mode the target's own replica can be made to go on all the same.
        """
        if self._domain is None or self._warned:
            return
        refused = shared_domain(self._domain, of_source, may_set=self._may_set)
        if refused is None:
            return
        if self._strict:
            raise NeedsPersonError(str(refused))
        self._warned = True
        log.warning(str(refused))
