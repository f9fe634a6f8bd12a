"""What of the settings decides how groups are read and scheduled."""

import pytest

from mtsd.replica.core.limits import referred_in
from mtsd.schedule.policies.foreign_key_families import ForeignKeys
from tests.operations.check.good_facts import replica

KEYS = ForeignKeys((("a.t", "b.u"), ("c.t", "c.u")), (frozenset({"a", "b"}), frozenset({"b", "d"})))

JOINED = dict.fromkeys(("a", "b", "d"), frozenset({"a", "b", "d"}))


@pytest.mark.parametrize(
    ("settings", "databases"),
    [
        ({"parallel_type": "database"}, JOINED),
        ({"parallel_type": "database", "consistency": "any_time"}, JOINED),
        ({"parallel_type": "database", "parallel_workers": 1}, {}),
        ({"parallel_type": "row", "parallel_workers": 0}, {}),
        ({"parallel_type": "row"}, None),
        ({"parallel_type": "table", "consistency": "eventual"}, None),
        ({"parallel_type": "table"}, {}),
        ({"parallel_type": "logical_clock"}, {}),
        ({"parallel_type": "commit_parent"}, {}),
    ],
)
def test_where_foreign_keys_make_groups_concern_others(
    settings: dict[str, object], databases: dict[str, set[str]] | None
) -> None:
    found = referred_in(replica(**{"parallel_workers": 4, **settings}).replica, KEYS)
    assert found == databases
