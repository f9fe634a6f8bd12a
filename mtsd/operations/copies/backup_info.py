r"""The file xtrabackup_binlog_info of Percona XtraBackup and of mariabackup.

One line, `FILE TAB POSITION [TAB GTIDS]` (documentation of Percona XtraBackup, "Index of files
created"; mariadb.com, "Files Created by mariadb-backup", where it is mariadb_backup_binlog_info in
newer versions). XtraBackup writes a set of several UUIDs over several lines.

`xtrabackup_slave_info` is SQL, which `sql_dump` reads. Seen from mariabackup 10.11; XtraBackup's
is from its documentation.

>>> parse_backup_info("binlog.000001\t772\t3-29590-3\n").position
Position(file='binlog.000001', offset=772)
"""

import re
from typing import Final

from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.copies.copied import Copied

_LINE: Final = re.compile(
    r"([^\s/'\"`{}\[\]:]{1,255})\t([0-9]{1,20})(?:\t([0-9A-Za-z_:,\s-]*))?\s*"
)


def is_backup_info(text: str) -> bool:
    """Return whether a text is that of xtrabackup_binlog_info."""
    return _LINE.fullmatch(text) is not None


def parse_backup_info(text: str) -> Copied:
    """Parse xtrabackup_binlog_info. Raises ValueError with the reason."""
    match = _LINE.fullmatch(text)
    if match is None:
        raise ValueError("it is not FILE, POSITION and GTIDs with tabs between them")
    gtids = "".join((match[3] or "").split())
    return Copied(
        "backup",
        Position(match[1], int(match[2])),
        GtidSet.parse(gtids) if gtids else None,
    )
