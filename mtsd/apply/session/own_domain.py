"""The GTID domain in which mtsd writes to the binary log of a MariaDB.

What mtsd applies gets GTIDs of the target. In a domain of the source they would stand between the
source's: with gtid_strict_mode a server refuses then to go on as the source's replica (errors 1947,
1948 and 1950). So each of mtsd's sessions has a domain of its own.
"""

from mtsd.model.gtid import GtidSet
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.server import Flavour
from mtsd.wire.family import SERVERS

SHARED_DOMAIN = Reason(
    "mtsd writes to the target's binary log in the GTID domain {domain}, in which the source has"
    " transactions, too: the target's own replica could not take over later (errors 1947, 1950)",
    "set [target] gtid_domain_id to a number that is no domain of the source's; it has {domains}",
)
CANNOT_LEAVE_DOMAIN = Reason(
    "mtsd's user may not set gtid_domain_id on the target, so that mtsd writes to its binary log in"
    " the target's own GTID domain {domain}, in which the source has transactions, too: the"
    " target's own replica could not take over later (errors 1947, 1950)",
    "GRANT BINLOG REPLAY ON *.* TO the user, or set the target's gtid_domain_id to a number that is"
    " no domain of the source's; it has {domains}",
)


def own_domain(configured: int, flavour: Flavour, server_id: int, *, logged: bool) -> int | None:
    """Return the domain of what mtsd writes; None if nothing that it writes has one.

    `configured` is `[target] gtid_domain_id`, the rest is the target's; `logged`: it writes what is
    applied to its binary log. Servers of one topology have different server_ids, so a server_id
    usually is nobody else's domain.
    """
    if not SERVERS[flavour].has_domains or not logged:
        return None
    return configured or server_id


def shared_domain(
    domain: int | None, of_source: GtidSet, *, may_set: bool = True
) -> Refused | None:
    """Decide whether a source that has executed `of_source` has transactions in mtsd's domain.

    `may_set`: mtsd's user may set the domain of its sessions.
    """
    domains = of_source.domains()
    if domain not in domains:
        return None
    reason = SHARED_DOMAIN if may_set else CANNOT_LEAVE_DOMAIN
    return refuse(reason, domain=domain, domains=", ".join(map(str, sorted(domains))))


def own_ahead(logged: GtidSet, server_id: int, position: GtidSet) -> GtidSet:
    """Return a MariaDB's own transactions that stand in the way of its replica.

    `logged` is its gtid_binlog_pos. They are in a domain of the `position`, with a greater number:
    as that of a replica, the server would refuse the position (error 1947).
    """
    reached = {place.uuid.partition("-")[0]: place.number for place in position.places()}
    ahead = [
        str(place)
        for place in logged.places()
        if place.uuid.endswith(f"-{server_id}")
        and place.number > reached.get(place.uuid.partition("-")[0], place.number)
    ]
    return GtidSet.parse(",".join(ahead))
