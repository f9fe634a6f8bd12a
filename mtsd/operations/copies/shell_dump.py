"""The file `@.json` of a dump of MySQL Shell (util.dumpInstance, dumpSchemas, dumpTables).

Names as MySQL Shell writes them (its source, modules/util/dump): gtidExecuted, binlogFile and
binlogPosition, consistent, gtidExecutedInconsistent, schemas. Not seen from a running MySQL Shell.
"""

import json

from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.copies.copied import Copied


def is_shell_dump(text: str) -> bool:
    """Return whether a text is that of a dump's `@.json`."""
    return text.lstrip().startswith("{")


def parse_shell_dump(text: str) -> Copied:
    """Parse `@.json`. Raises ValueError with the reason."""
    try:
        contents = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON, but begins like the @.json of MySQL Shell") from None
    if not isinstance(contents, dict) or "gtidExecuted" not in contents:
        raise ValueError("it is not the @.json of a dump by MySQL Shell: gtidExecuted is missing")
    if (
        contents.get("consistent") is not True
        or contents.get("gtidExecutedInconsistent") is not False
    ):
        raise ValueError(
            "MySQL Shell says that the dump is not consistent: it is of no single moment. Make it"
            " with consistent: true, as a user with RELOAD or BACKUP_ADMIN"
        )
    gtids = contents["gtidExecuted"]
    file, offset = contents.get("binlogFile"), contents.get("binlogPosition")
    position = None
    if isinstance(file, str) and file and type(offset) is int and offset >= 0:
        position = Position(file, offset)
    if not isinstance(gtids, str) or (not gtids and position is None):
        raise ValueError(
            "the dump says no place: the user who made it lacks REPLICATION CLIENT, or the server"
            " writes no binary log"
        )
    schemas = contents.get("schemas")
    named = schemas if isinstance(schemas, list) else []
    return Copied(
        "MySQL Shell's dump",
        position,
        GtidSet.parse(gtids) if gtids else None,
        databases=frozenset(name for name in named if isinstance(name, str)),
    )
