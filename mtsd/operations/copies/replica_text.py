r"""The text that SHOW REPLICA STATUS\G prints, or its older equivalents, of a stopped replica.

A snapshot of a stopped replica is a copy of its source. Columns as `mtsd.wire.replica_status`
reads them; a value may be a GTID set over several lines.
"""

import re
from typing import Final

from mtsd.model.errors import NeedsPersonError
from mtsd.operations.copies.copied import Copied
from mtsd.operations.copies.own_replica import copied_by
from mtsd.wire.replica_status import replica_status

_COLUMN: Final = re.compile(r"^ *([A-Z][A-Za-z_]{2,63}): ?(.*)$")
_IS_STATUS: Final = re.compile(r"^ *(?:Source|Master)_Host: ", re.MULTILINE)
_ROW: Final = re.compile(r"^\*+ \d+\. row \*+$", re.MULTILINE)


def is_replica_text(text: str) -> bool:
    """Return whether a text is that of a replica's status, one column a line."""
    return _IS_STATUS.search(text) is not None


def parse_replica_text(text: str) -> tuple[Copied, ...]:
    """Return the place of each channel. Raises ValueError with the reason."""
    copies = []
    for part in _ROW.split(text):
        columns: dict[str, str] = {}
        last = ""
        for line in part.splitlines():
            if (column := _COLUMN.match(line)) is not None:
                last = column[1]
                columns[last] = column[2].strip()
            elif last:
                # The next line of a long set.
                columns[last] += line.strip()
        if not {"Source_Host", "Master_Host"}.isdisjoint(columns):
            try:
                copies.append(copied_by(replica_status(dict(columns))))
            except NeedsPersonError as error:
                raise ValueError(str(error)) from None
    if not copies:
        raise ValueError("it is not what SHOW REPLICA STATUS\\G prints")
    return tuple(copies)
