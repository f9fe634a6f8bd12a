"""What parallel_type = "auto" comes to, as a table."""

import pytest

from mtsd.schedule.policies.automatic import ServersSay, chosen_policy


@pytest.mark.parametrize(
    ("binlog_format", "tracking", "merges", "tables", "whole", "comes_to", "is_final"),
    [
        ("ROW", "WRITESET", False, 10, 10, "logical_clock", True),
        ("ROW", "WRITESET", False, 0, 0, "logical_clock", True),
        # The source knows of no order between databases that become one here.
        ("ROW", "WRITESET", True, 10, 0, "row", True),
        ("ROW", "WRITESET", True, 10, 5, "database", True),
        ("ROW", "WRITESET_SESSION", False, 10, 1, "row", True),
        ("ROW", "COMMIT_ORDER", False, 10, 4, "row", True),
        ("ROW", "COMMIT_ORDER", False, 10, 5, "database", True),
        ("ROW", "", False, 10, 0, "row", True),
        ("ROW", "", False, 0, 0, "database", False),
        # Statements have neither rows nor keys.
        ("MIXED", "WRITESET", False, 10, 0, "database", True),
        ("STATEMENT", "", False, 0, 0, "database", True),
    ],
)
def test_choice(
    binlog_format: str,
    tracking: str,
    merges: bool,
    tables: int,
    whole: int,
    comes_to: str,
    is_final: bool,
) -> None:
    said = ServersSay("MySQL 8.0.40", binlog_format, tracking, merges, tables, whole)
    chosen = chosen_policy(said)
    assert (chosen.parallel_type, chosen.is_final) == (comes_to, is_final)
    assert chosen.because
