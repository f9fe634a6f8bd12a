"""The rules between MySQL and MariaDB do what they do in the source's own kind of replica."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.filter.beside_a_replica import Rules, Three
from tests.filter.changes_and_rules import DATA, DEFINITIONS, RULES, SEVERAL
from tests.load.equality import unequal
from tests.servers.mariadb import provide_mariadb
from tests.servers.provision import provide

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

# What one family logs about accounts, the other does not understand.
PORTABLE = [*DATA, *SEVERAL, *(each for each in DEFINITIONS if "USER" not in each[1])]
IN_THE_SUITE = ("order", "both levels", "rewrite and others")
OF_THEIR_CASE = ("ignore_table", "wild_do_table", "case")
"""These mean something else where names of tables are not case-sensitive."""
IGNORED: Rules = {"ignore_table": ["a.t", "c.t1"]}
OF_THE_TARGET: dict[str, tuple[Rules, Rules]] = {
    "upper and lower case": (
        {"ignore_table": ["a.t", "c.T1"]},
        {"ignore_table": ["a.t"]},
    ),
    "both levels of databases": (
        {"do_db": ["a"], "wild_ignore_table": ["d%.%", "a.u"]},
        {"do_db": ["a", "d1"], "wild_ignore_table": ["a.u"]},
    ),
    "renamed definitions": (
        {"rewrite_db": [["d2", "c"]], "wild_do_table": ["x.%", "a.%", "b.t"]},
        {"rewrite_db": [["d2", "c"]], "wild_do_table": ["x.%", "a.%", "b.t", "d1.%"]},
    ),
}
"""Rules that mean something else on the other family's target.

Each with what a MySQL's own replica has to be told to do what a MariaDB does, and the reverse.
"""


@pytest.fixture(scope="module", params=["9.7-to-11.8", "11.8-to-9.7"])
def three(request: pytest.FixtureRequest) -> Iterator[Three]:
    both = provide(), provide_mariadb("11.8")
    source, target = both if request.param == "9.7-to-11.8" else reversed(both)
    with Three.running(source, target) as three:
        three.make(PORTABLE)
        yield three


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(name, marks=[] if name in IN_THE_SUITE else pytest.mark.long)
        for name in RULES
        if name not in OF_THEIR_CASE and name not in OF_THE_TARGET
    ],
)
def test_equal_to_the_sources_own_replica(three: Three, rules: str, tmp_path: Path) -> None:
    three.replicate(RULES[rules], tmp_path)
    assert unequal(three.native, three.target) == []


@pytest.mark.parametrize(
    "rules",
    [
        "upper and lower case",
        pytest.param("both levels of databases", marks=pytest.mark.long),
        pytest.param("renamed definitions", marks=pytest.mark.long),
    ],
)
def test_the_target_decides(three: Three, rules: str, tmp_path: Path) -> None:
    """As they are for its own kind of replica, whatever they are for the source's."""
    given = {**RULES, "upper and lower case": IGNORED}[rules]
    three.replicate(given, tmp_path, of_native=OF_THE_TARGET[rules][three.mariadb])
    assert unequal(three.native, three.target) == []
