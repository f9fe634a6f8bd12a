from collections.abc import Mapping
from dataclasses import replace

import pytest

from mtsd.model.group import GroupKind
from mtsd.model.parallel_type import BY_THE_SOURCE
from mtsd.plan.advice import TriedCandidate, excesses, reasons, recommended
from mtsd.plan.alike import alike, curves
from mtsd.plan.candidate import Bind, Candidate, candidates, not_simulated
from mtsd.plan.costs import Machines
from mtsd.plan.load import binds_worth_a_try, load_of
from mtsd.plan.page import page
from mtsd.plan.plan import FittedPoint, Plan, toml
from mtsd.plan.simulated_run import SimulatedRun
from mtsd.plan.table import lines
from mtsd.schedule.policies.choice import POLICIES
from tests.plan.streams import COSTS, load_of_shapes
from tests.schedule.worlds.streams import Shape

LOAD = load_of(
    load_of_shapes(
        [
            *[Shape(("shop",))] * 60,
            *[Shape(("blog",))] * 20,
            *[Shape(("shop", "stock"))] * 15,
            Shape(("shop",), kind=GroupKind.DDL, alone=True),
            Shape(("<b>",)),
        ]
    )
)


def result(
    workers: int,
    batch: int,
    rate: float,
    *,
    target: float = 0.5,
    sync: float = 0.1,
    reading: float = 0.1,
    waits: Mapping[str, float] | None = None,
) -> TriedCandidate:
    outcome = SimulatedRun(
        100, 100, 1.0, rate, reading, 0.1, target, sync, (0.5,) * workers, {}, waits or {}
    )
    return TriedCandidate(Candidate("database", workers, batch), outcome)


def test_every_policy_of_the_scheduler_is_tried() -> None:
    tried = candidates([1, 4], [1, 512], [(), (("a", "b"),)])
    assert {one.parallel_type for one in tried} == set(POLICIES)
    assert len(tried) == len(set(tried)) == 2 + 2 * (2 * len(POLICIES) - len(BY_THE_SOURCE))
    assert not any(one.bind for one in tried if one.parallel_type in BY_THE_SOURCE)
    assert sum(one.parallel_workers == 1 for one in tried) == 2


def test_a_load_is_counted() -> None:
    assert (LOAD.groups, LOAD.rows, LOAD.several) == (97, 194, 15)
    assert [(part.name, part.groups) for part in LOAD.databases][:2] == [("shop", 76), ("blog", 20)]
    assert LOAD.databases[0].share == pytest.approx((2 * 61 + 15) / 194)
    assert [(pair.first, pair.second, pair.groups) for pair in LOAD.together] == [
        ("shop", "stock", 15)
    ]
    assert LOAD.alone == {"ddl": 1}
    assert (LOAD.seconds, LOAD.peak_rate) == (96.0, 1)


def test_databases_that_are_updated_together_are_worth_binding() -> None:
    assert binds_worth_a_try(LOAD) == ((), (("shop", "stock"),))
    apart = load_of(load_of_shapes([Shape(("a",)), Shape(("b",))] * 100))
    assert binds_worth_a_try(apart) == ((),)
    # Binding everything together would be the same as one worker.
    together = load_of(load_of_shapes([Shape(("a", "b"))] * 100))
    assert binds_worth_a_try(together) == ((),)


def test_the_simplest_of_the_fast_ones_is_recommended() -> None:
    results = [result(1, 1, 100), result(4, 512, 1000), result(16, 512, 1010), result(2, 32, 960)]
    assert recommended(results).candidate == Candidate("database", 2, 32)
    with pytest.raises(ValueError, match="nothing was simulated"):
        recommended([])


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (result(2, 1, 1, target=1.9), "processors: target and daemon use 2.1 of 2"),
        (result(2, 1, 1, sync=0.95), "syncs: the target syncs its logs 95% of the time"),
        (result(2, 1, 1, reading=0.9), "the daemon: reading takes 90% of a processor"),
        (result(2, 1, 1, waits={"a+b": 0.8}), "dependencies: workers wait 40% of the time"),
        (result(8, 1, 1), "database shop: it has 71% of the rows"),
    ],
)
def test_what_holds_back_is_said(found: TriedCandidate, why: str) -> None:
    assert any(reason.startswith(why) for reason in reasons(found, LOAD, Machines(2)))


def plan() -> Plan:
    results = (result(1, 1, 100), result(4, 512, 1000, target=1.9))
    fits = (FittedPoint(results[0].candidate, 90.0, 99.0),)
    return Plan(LOAD, 97, COSTS, Machines(2), fits, results, ("row needs keys",))


def test_a_plan_is_json_lines_and_a_page() -> None:
    found = plan()
    document = found.document()
    assert document["recommended"] == {
        "replica": {
            "parallel_type": "database",
            "parallel_workers": 4,
            "batch_groups": 512,
            "bind": [],
        },
        "rate": 1000,
        "speed_up": 10.0,
    }
    text = "\n".join(lines(found))
    assert "parallel_workers = 4\nbatch_groups = 512" in text
    assert "shop and stock are updated together by 15" in text
    assert "not simulated: row needs keys" in text
    assert "+10%" in text
    busy = replace(found, costs=replace(COSTS, background=4))
    assert "measure on a quiet machine" in "\n".join(lines(busy))
    assert '<p class="warning">something else wants the processors' in page(busy, {})
    html = page(found, {"throughput": b"png"})
    assert "data:image/png;base64,cG5n" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html.replace("<b>1,000</b>", "")
    assert "http" not in html


def of(policy: str, workers: int, batch: int, rate: float, bind: Bind = ()) -> TriedCandidate:
    found = result(workers, batch, rate)
    return replace(found, candidate=Candidate(policy, workers, batch, bind))


def test_results_that_are_alike_are_one() -> None:
    bind = (("a", "b"),)
    results = [
        of("database", 1, 512, 1000),
        *(of("database", count, 512, 2000) for count in (4, 8)),
        *(of("table", count, 512, 2010) for count in (4, 8)),
        *(of("table", count, 512, rate, bind) for count, rate in ((4, 2000), (8, 3000))),
        of("database", 4, 1, 2000),
    ]
    found = alike(results)
    assert [(one.policies, one.workers, one.batch, one.binds) for one in found] == [
        (("table",), (8,), 512, (bind,)),
        (("database", "table"), (4, 8), 512, ((),)),
        (("table",), (4,), 512, (bind,)),
        (("database",), (4,), 1, ((),)),
        (("database",), (1,), 512, ((),)),
    ]
    assert sum(len(one.results) for one in found) == len(results)
    drawn = curves(results)
    assert [(curve.batch, curve.names) for curve in drawn] == [
        (512, (("database", 0), ("table", 0))),
        (512, (("table", 1),)),
        (1, (("database", 0),)),
    ]
    assert [one.candidate.parallel_workers for one in drawn[0].results] == [1, 4, 8]


def test_workers_beyond_what_there_is_for_them_are_explained() -> None:
    assert not excesses(result(2, 1, 1), LOAD, Machines(2))
    processors, databases = excesses(result(8, 1, 1), LOAD, Machines(16, 4))
    assert processors.startswith("8 workers are more than the 4 processors of the target's machine")
    assert databases.startswith("8 workers are more than the 4 databases of the load")
    assert len(excesses(of("table", 8, 1, 1), LOAD, Machines(4))) == 1


def test_a_recommendation_is_in_the_words_of_the_configuration() -> None:
    assert toml(Candidate("database", 4, 512, (("a", "b"),))) == (
        '[replica]\nparallel_type = "database"\nparallel_workers = 4\nbatch_groups = 512\n'
        'bind = [["a", "b"]]'
    )


def test_a_consistency_that_is_not_simulated_is_named() -> None:
    assert not not_simulated("partition", "off")
    for whys in (
        not_simulated("partition", "off", rules="do_db = b"),
        not_simulated("partition", "off", distributed=True),
        not_simulated("partition", "off", gtid="preserve"),
    ):
        assert len(whys) == 1
    (why,) = not_simulated("any_time", "off")
    assert 'consistency = "any_time"' in why
    whys = not_simulated("eventual", "row")
    assert 'consistency = "eventual"' in whys[0]
    assert "parallel_type and bind have no effect" in whys[0]
    assert 'split_transactions = "row"' in whys[1]
