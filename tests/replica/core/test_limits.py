"""What of the settings decides how groups are read and scheduled."""

import pytest

from mtsd.replica.core.limits import referred_in
from mtsd.schedule.policies.foreign_key_families import ForeignKeys
from tests.operations.check.good_facts import replica

KEYS = ForeignKeys((("a.t", "b.u"), ("c.t", "c.u")), (frozenset({"a", "b"}), frozenset({"b", "d"})))


@pytest.mark.parametrize(
    ("settings", "databases"),
    [
        ({"parallel_type": "database"}, {"a", "b", "d"}),
        ({"parallel_type": "database", "consistency": "any_time"}, {"a", "b", "d"}),
        ({"parallel_type": "database", "parallel_workers": 1}, set()),
        ({"parallel_type": "row", "parallel_workers": 0}, set()),
        ({"parallel_type": "row"}, None),
        ({"parallel_type": "table", "consistency": "eventual"}, None),
        ({"parallel_type": "table"}, set()),
        ({"parallel_type": "logical_clock"}, set()),
        ({"parallel_type": "commit_parent"}, set()),
    ],
)
def test_where_foreign_keys_make_groups_run_alone(
    settings: dict[str, object], databases: set[str] | None
) -> None:
    found = referred_in(replica(**{"parallel_workers": 4, **settings}).replica, KEYS)
    assert found == databases
