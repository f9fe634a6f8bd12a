import pytest

from mtsd.model.position import NOWHERE, Position
from mtsd.source.source_log import bytes_behind, retention_of
from mtsd.source.source_state import BinlogFile

FILES = (BinlogFile("b.1", 1000), BinlogFile("b.2", 500), BinlogFile("b.3", 200))


@pytest.mark.parametrize(
    ("executed", "received", "behind"),
    [
        (Position("b.3", 200), Position("b.3", 200), 0),
        (Position("b.1", 900), Position("b.2", 100), 800),
        # More has been read than was listed, also in a file that began later.
        (Position("b.3", 200), Position("b.3", 350), 150),
        (Position("b.3", 200), Position("b.4", 40), 40),
        (Position("b.4", 40), Position("b.4", 90), 50),
        # Purged, or known by GTID only.
        (Position("b.0", 10), Position("b.3", 200), None),
        (NOWHERE, NOWHERE, None),
    ],
)
def test_what_is_behind(executed: Position, received: Position, behind: int | None) -> None:
    assert bytes_behind(FILES, executed, received) == behind
    assert bytes_behind((), executed, received) is None


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({"binlog_expire_logs_seconds": "3600", "binlog_expire_logs_auto_purge": "ON"}, 3600.0),
        ({"binlog_expire_logs_seconds": "3600", "binlog_expire_logs_auto_purge": "OFF"}, None),
        ({"binlog_expire_logs_seconds": "0"}, None),
        ({"expire_logs_days": "2"}, 172_800.0),
        ({"binlog_expire_logs_seconds": "60", "expire_logs_days": "0.000694"}, 60.0),
        ({}, None),
    ],
)
def test_how_long_a_source_keeps_its_log(variables: dict[str, str], seconds: float | None) -> None:
    assert retention_of(variables) == seconds
