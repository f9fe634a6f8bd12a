"""What a source logs of the order of its transactions.

Facts: MySQL 5.7, 8.0 and 8.4 manuals, "Binary Logging Options and Variables". MySQL logs a clock
from 5.7 on. The variable came with 5.7.22 and 8.0.1, with COMMIT_ORDER as its default. It was
removed when WRITESET became the only way, in 8.4. A MariaDB logs no clock.
"""

from collections.abc import Mapping
from typing import Final

from mtsd.model.server import ServerVersion
from mtsd.source.family import SOURCES

TRACKING: Final = "binlog_transaction_dependency_tracking"
ASKED: Final = (TRACKING, "binlog_format")
"""The variables that it is told by."""
_ONLY_WRITESET: Final = (8, 1, 0)
"""Without the variable, a later one has WRITESET, and an earlier one COMMIT_ORDER."""


def dependency_tracking(server: ServerVersion, variables: Mapping[str, str]) -> str:
    """Return WRITESET, WRITESET_SESSION or COMMIT_ORDER; "" if the source logs no clock.

    `variables` are global ones, by their names.
    """
    if server.number < SOURCES[server.flavour].clock_since:
        return ""
    only = "WRITESET" if server.number >= _ONLY_WRITESET else "COMMIT_ORDER"
    return variables.get(TRACKING, only).upper()
