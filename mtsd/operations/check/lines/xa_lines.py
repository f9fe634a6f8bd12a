"""Lines about XA transactions: whether the target can hold them, and what is already prepared."""

from collections.abc import Iterable, Iterator

from mtsd.apply.session.family import TARGETS
from mtsd.config import Earliest, Settings
from mtsd.model.xa_xid import XaXid
from mtsd.operations.check.facts import SourceFacts, TargetFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line, listed
from mtsd.operations.check.lines.server_lines import counted
from mtsd.operations.check.privileges import XA, HeldPrivileges, grant, missing


def xa_lines(settings: Settings, target: TargetFacts, source: SourceFacts | None) -> Iterator[Line]:
    """Yield the lines; `source` is None if it could not be read."""
    server = target.server
    splits = settings.replica.split_transactions != "off"
    if splits and not TARGETS[server.flavour].splits:
        yield Kind.SPLIT_ON_MARIADB.line()
        splits = False
    if server.on("log_bin") and not settings.target.binary_log:
        yield (Kind.SPLIT_UNLOGGED if splits else Kind.XA_UNLOGGED).line()
    if server.version < TARGETS[server.flavour].detaches_since:
        kind = Kind.SPLIT_ATTACHED if splits else Kind.XA_ATTACHED
        yield kind.line(version=server.version_text)
    lacking = missing(HeldPrivileges.of(server.grants), XA, server.server)
    if lacking:
        grants = grant(lacking, server.account)
        kind = Kind.SPLIT_UNLISTED if splits else Kind.XA_UNLISTED
        yield kind.line(user=server.account, missing=lacking[0], grants=grants)
    begins_later = target.position.channel is None and not (
        isinstance(settings.source.start, Earliest)
    )
    if source is not None and source.prepared and begins_later:
        yield Kind.PREPARED_BEFORE.line(**_named(source.prepared))
    xids = target.prepared or frozenset()
    if source is not None:
        xids |= source.prepared or frozenset()
    formats = {xid.format_id for xid in xids}
    recovers_all = TARGETS[server.flavour].recovers_all_formats
    if len(formats) > 1 and server.on("log_bin") and not recovers_all:
        yield Kind.XID_FORMATS.line(formats=listed([str(each) for each in sorted(formats)]))
    if target.prepared is None or target.position.daemon is not None:
        # A running daemon moves on: what it prepares may not be recorded yet.
        return
    ours = {row.xid: row for row in target.position.prepared if not row.skipped}
    taken = target.prepared - ours.keys() - target.position.xids_in_doubt
    if taken:
        yield Kind.XIDS_TAKEN.line(**_named(taken))
    gone = {xid for xid, row in ours.items() if row.changes} - target.prepared
    gone -= target.position.xids_in_doubt
    if gone:
        yield Kind.XIDS_GONE.line(**_named(gone))


def _named(xids: Iterable[XaXid]) -> dict[str, str]:
    names = sorted(map(str, xids))
    return {"count": counted(len(names), "transaction"), "xids": listed(names)}
