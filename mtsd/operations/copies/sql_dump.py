"""The place in a dump of SQL statements: mysqldump, mariadb-dump.

Statements of which each is a line of its own, commented out or not (manuals, mysqldump
--source-data, --dump-replica, --set-gtid-purged; mariadb-dump --master-data, --dump-slave, --gtid;
seen in dumps of MySQL 9.7 and MariaDB 10.11 and 11.8):

    CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=811;
    -- CHANGE MASTER TO MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=772;
    SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '8dbb15e3-ea19-11f1-9375-02fc00000001:1-3';
    -- SET GLOBAL gtid_slave_pos='3-29590-3';

mysqldump writes a long GTID set over several lines. All stand before the first row, but for
mariadb-dump's gtid_slave_pos, which comes at the end.
"""

import re
from typing import Final

from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.copies.copied import Copied

_COMMENTED: Final = r"^(?:--[ ]|/\*[ ])?"
_HOST: Final = r"(?:(?:SOURCE|MASTER)_(?:HOST|PORT)=[^,\n]{1,300},[ ]?){0,2}"
_PLACE: Final = re.compile(
    _COMMENTED + r"CHANGE (?:REPLICATION SOURCE|MASTER)(?:[ ]'[^'\n]{0,64}')? TO " + _HOST +
    r"(?:SOURCE|MASTER)_LOG_FILE='([^'\n]{1,512})',[ ]?(?:SOURCE|MASTER)_LOG_POS=([0-9]{1,20})",
    re.MULTILINE,
)  # fmt: skip
_GTIDS: Final = re.compile(
    _COMMENTED + r"SET (?:@@GLOBAL\.|GLOBAL )(?:gtid_purged|gtid_slave_pos)"
    r"[ ]?=[ ]?(?:/\*!80000 '\+'\*/ )?'\+?([0-9A-Za-z_:,\s-]*)'",
    re.MULTILINE | re.IGNORECASE,
)  # fmt: skip
_DATABASE: Final = re.compile(r"^-- Current Database: `((?:[^`\n]|``){1,256})`$", re.MULTILINE)
_IS_DUMP: Final = re.compile(
    r"^-- (?:MySQL|MariaDB) dump |"
    + _COMMENTED + r"(?:CHANGE (?:REPLICATION|MASTER)|SET (?:@@GLOBAL\.|GLOBAL )gtid_)",
    re.MULTILINE | re.IGNORECASE,
)  # fmt: skip
_NO_PLACE: Final = (
    "the dump says no place in the source's binary log: make it with --source-data=2 (mariadb-dump:"
    " --master-data=2), together with --single-transaction"
)


def is_sql_dump(text: str) -> bool:
    """Return whether a text begins like a dump of SQL."""
    return _IS_DUMP.search(text) is not None


def parse_sql_dump(head: str, tail: str = "") -> Copied:
    """Parse the beginning of a dump and, of a large one, its end.

    Raises ValueError with the reason, also if it names two places.
    """
    places = {*_PLACE.findall(head)}
    # A routine's text at the end may look like a place, but not one that a dump writes there.
    sets = {"".join(each.split()) for each in (*_GTIDS.findall(head), *_GTIDS.findall(tail))}
    if len(places) > 1 or len(sets) > 1:
        raise ValueError("the dump names several places: say which with FILE:POS or gtid:SET")
    if not places and not any(sets):
        raise ValueError(_NO_PLACE)
    return Copied(
        "dump",
        next((Position(file, int(offset)) for file, offset in places), None),
        next((GtidSet.parse(each) for each in sets), None),
        databases=frozenset(
            name.replace("``", "`") for text in (head, tail) for name in _DATABASE.findall(text)
        ),
    )
