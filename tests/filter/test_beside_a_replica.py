"""The rules do what they do in the server's own replica, for statements and for rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.filter.beside_a_replica import Three, contents
from tests.filter.changes_and_rules import DATA, DEFINITIONS, RULES, SEVERAL

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def three() -> Iterator[Three]:
    with Three.running() as three:
        three.make([*DATA, *SEVERAL, *DEFINITIONS])
        yield three


IN_THE_SUITE = ("order", "both levels of databases", "rewrite and others")
"""The other rules belong to `scripts/test --long`."""


@pytest.mark.parametrize(
    "rules",
    [pytest.param(name, marks=[] if name in IN_THE_SUITE else pytest.mark.long) for name in RULES],
)
def test_equal_to_the_servers_own_replica(three: Three, rules: str, tmp_path: Path) -> None:
    three.replicate(RULES[rules], tmp_path)
    assert contents(three.target) == contents(three.native)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(name, marks=[] if name == "rewrite and others" else pytest.mark.long)
        for name in RULES
    ],
)
def test_equal_with_rows_as_sql(three: Three, rules: str, tmp_path: Path) -> None:
    three.replicate(RULES[rules], tmp_path, "sql")
    assert contents(three.target) == contents(three.native)
