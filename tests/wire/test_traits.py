"""The family and version of a server, from its greeting."""

import pytest

from mtsd.model.outcome.reason import Refused
from mtsd.model.server import Flavour, ServerVersion, flavour_of_identity, identity_of
from mtsd.wire.traits import TOO_OLD, supported

MYSQL = ServerVersion(Flavour.MYSQL, (9, 7, 0))
MARIADB = ServerVersion(Flavour.MARIADB, (10, 11, 18))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("9.7.0", MYSQL),
        ("9.7.0-commercial", MYSQL),
        ("5.5.5-10.11.18-MariaDB-0+deb12u1-log", MARIADB),
        ("10.11.18-MariaDB", MARIADB),
        ("11.8.9-MariaDB-4 from Debian-log", ServerVersion(Flavour.MARIADB, (11, 8, 9))),
    ],
)
def test_greetings(text: str, version: ServerVersion) -> None:
    assert supported("source", text) == supported("target", text) == version


@pytest.mark.parametrize(
    ("server", "text", "needed"),
    [
        ("source", "5.5.62", "MySQL 5.6"),
        ("target", "5.7.44-log", "MySQL 8.0"),
        ("source", "5.5.5-10.4.34-MariaDB", "MariaDB 10.5"),
        ("target", "10.4.34-MariaDB", "MariaDB 10.5"),
        ("target", "something else", "MySQL 8.0"),
    ],
)
def test_greetings_of_servers_that_are_too_old(server: str, text: str, needed: str) -> None:
    found = supported(server, text)
    assert isinstance(found, Refused)
    assert found.reason is TOO_OLD
    assert f"Upgrade it: {needed} or later" in str(found)


def test_what_tells_a_server_from_others() -> None:
    variables = {"server_id": "7", "server_uuid": "3E11FA47"}
    assert identity_of(Flavour.MYSQL, variables) == "3e11fa47"
    assert identity_of(Flavour.MARIADB, variables) == "server_id 7"
    for flavour in Flavour:
        assert flavour_of_identity(identity_of(flavour, variables)) is flavour


def test_a_mariadb_knows_what_an_early_mysql_knew() -> None:
    assert MYSQL.mysql == (9, 7, 0)
    assert MARIADB.mysql < (8, 0, 0)
