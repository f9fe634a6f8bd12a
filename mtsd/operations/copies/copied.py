"""What a copy says of the moment that it was taken at, and where a channel begins after it.

A copy from a MySQL with GTIDs has both a set and a place in a file. The set is believed first: it
means the same on every server of a replication group, while a file is one server's own. So a dump
that was taken from a replica serves for a channel that reads from its source.

>>> copied = Copied("mysqldump", Position("binlog.000042", 157))
>>> start_of(copied, SourceState("3e11fa47-71ca-11e1-9e33-c80aa9429562", gtid_mode=False))
FilePosition(file='binlog.000042', pos=157)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mtsd.config.start import FilePosition, GtidStart, Start
from mtsd.filter.filter import Filter
from mtsd.model.gtid import GtidSet
from mtsd.model.names import folded
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.model.position import Position
from mtsd.source.continuation import shown
from mtsd.source.source_state import SourceState

STRANGE = Reason(
    "the copy is of another server: the source has executed none of its GTIDs ({gtids})",
    "point [source] at the server that was copied, or at one that replicates with it",
)
ONLY_GTIDS = Reason(
    "the copy is known by GTID only ({gtids}), and the source's gtid_mode is not ON",
    "set gtid_mode = ON on the source, or make a copy that says file and position"
    " (mysqldump --source-data=2)",
)
OTHER_SERVER = Reason(
    "the copy's place {place} is in the binary log of server {uuid}, not of the source {source}",
    "point [source] at that server; without GTIDs there is no such place on another one",
)
NOT_LOADED = Reason(
    "the target has none of the source's tables in {databases}, which the copy is of",
    "load the copy first; if these tables are newer than it, say so with --although-missing",
)
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Copied:
    """The moment of a copy.

    `maker` is the program it is from, or the server's own feature; `databases` what is known to be
    in it, by their names on the source, none if that is not known.
    """

    maker: str
    position: Position | None = None
    gtids: GtidSet | None = None
    """All that was executed; None if the copy does not say."""
    source_uuid: str = ""
    """In lower case: the server that has `position` in its binary log; "" if it is not said."""
    of_replica: bool = False
    """The GTIDs are those of a replica, which has executed some of its own too."""
    databases: frozenset[str] = frozenset()

    def __str__(self) -> str:
        places = [] if self.position is None else [str(self.position)]
        if self.gtids:
            places.append(f"GTIDs {shown(self.gtids)}")
        return f"{self.maker} of {' with '.join(places)}"


def chosen(copies: Sequence[Copied], source_uuid: str) -> Copied:
    """Return the place that is in the source's own log, of those that one copy names."""
    return next((each for each in copies if each.source_uuid == source_uuid.lower()), copies[0])


def start_of(copied: Copied, source: SourceState) -> Start | Refused:
    """Decide where a channel begins after a copy."""
    gtids = copied.gtids
    if gtids and source.gtid_mode:
        known = gtids.shared(source.executed)
        if not known:
            return refuse(STRANGE, gtids=shown(gtids))
        return GtidStart(str(known if copied.of_replica else gtids))
    place = copied.position
    if place is None:
        return refuse(ONLY_GTIDS, gtids=shown(gtids or GtidSet()))
    if copied.source_uuid and copied.source_uuid != source.uuid.lower():
        return refuse(OTHER_SERVER, place=place, uuid=copied.source_uuid, source=source.uuid)
    return FilePosition(place.file, place.offset)


def loaded(
    copied: Copied,
    rules: Filter,
    source: Iterable[tuple[str, str]],
    target: Iterable[tuple[str, str]],
) -> dict[tuple[str, str], bool]:
    """Return whether the target has each replicated table of the databases that a copy is of.

    By (database, table), with the source's names. Where the copy does not say which databases it is
    of: of all.
    """
    there = {(folded(database), folded(table)) for database, table in target}
    named = {folded(each) for each in copied.databases}
    found: dict[tuple[str, str], bool] = {}
    for database, table in source:
        on_target = rules.row_database(database, table)
        if on_target is not None and (not named or folded(database) in named):
            found[database, table] = (folded(on_target), folded(table)) in there
    return found


def not_loaded(copied: Copied, tables: Mapping[tuple[str, str], bool]) -> Refused | None:
    """Refuse if the target lacks the copy, by what `loaded` says.

    Single tables may have been created since, and come by themselves. A whole database without any
    has not been loaded; where the copy does not say which it is of, all of them.
    """
    databases = {database for database, _ in tables}
    empty = sorted(databases - {database for (database, _), there in tables.items() if there})
    if not empty or (not copied.databases and len(empty) < len(databases)):
        return None
    return refuse(NOT_LOADED, databases=_listed(empty))


def missing_of(tables: Mapping[tuple[str, str], bool]) -> str:
    """Name the tables that the target lacks; "" if it has all of them."""
    return _listed([".".join(table) for table, there in sorted(tables.items()) if not there])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"{', '.join(names[:_MAX_NAMED])}{more}"
