from dataclasses import replace

from mtsd.control.policy_advice import LoadSeen, better_policy

ONE_DATABASE = LoadSeen("database", 4, 60.0, {"shop": 970, "blog": 30}, 50.0, 0.0)
WAITS = LoadSeen("table", 4, 60.0, {"shop": 600, "blog": 400}, 80.0, 80.0)


def test_one_database_has_nearly_all() -> None:
    said = better_policy(ONE_DATABASE)
    assert said == "shop has 97% of the transactions, which one of 4 workers applies"
    # Its worker rests half of the time, so it applies what there is.
    assert better_policy(replace(ONE_DATABASE, busy_seconds=29.0)) is None
    assert better_policy(replace(ONE_DATABASE, groups={"shop": 890, "blog": 110})) is None
    assert better_policy(replace(ONE_DATABASE, groups={"shop": 999})) is None
    assert better_policy(replace(ONE_DATABASE, groups={})) is None
    assert better_policy(replace(ONE_DATABASE, workers=1)) is None
    # By table the tables count, and what else was chosen was chosen on purpose.
    for other in ("table", "row", "logical_clock", ""):
        assert better_policy(replace(ONE_DATABASE, parallel_type=other)) is None


def test_workers_wait_for_partitions() -> None:
    said = better_policy(WAITS)
    assert said == "workers wait 33% of their time for a partition that another one has"
    assert better_policy(replace(WAITS, partition_seconds=47.0)) is None
    assert better_policy(replace(WAITS, parallel_type="row")) is None


def test_only_what_came_since_counts() -> None:
    later = LoadSeen("database", 4, 120.0, {"shop": 1070, "blog": 1030}, 110.0, 0.0)
    assert better_policy(later.since(ONE_DATABASE)) is not None
    assert better_policy(later) is None
