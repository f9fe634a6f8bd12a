import pytest

from mtsd.model.server import Flavour, ServerVersion, Version
from mtsd.source.logged_order import TRACKING, dependency_tracking


@pytest.mark.parametrize(
    ("flavour", "version", "value", "tracking"),
    [
        (Flavour.MYSQL, (5, 6, 51), "", ""),
        (Flavour.MYSQL, (5, 7, 21), "", "COMMIT_ORDER"),
        (Flavour.MYSQL, (5, 7, 44), "WRITESET", "WRITESET"),
        (Flavour.MYSQL, (8, 0, 40), "commit_order", "COMMIT_ORDER"),
        (Flavour.MYSQL, (8, 0, 40), "WRITESET_SESSION", "WRITESET_SESSION"),
        (Flavour.MYSQL, (8, 4, 0), "", "WRITESET"),
        (Flavour.MYSQL, (9, 7, 4), "", "WRITESET"),
        (Flavour.MARIADB, (11, 8, 1), "", ""),
    ],
)
def test_how_a_source_tracks(flavour: Flavour, version: Version, value: str, tracking: str) -> None:
    variables = {TRACKING: value} if value else {}
    assert dependency_tracking(ServerVersion(flavour, version), variables) == tracking
