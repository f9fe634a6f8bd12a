"""What is applied twice if nobody looks: found by GTID, and never where it is not so."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.apply.position.executed_gtids import mariadb_held
from mtsd.model.gtid import Gtid, GtidSet
from mtsd.model.outcome.command import options
from mtsd.model.outcome.reason import Refused
from mtsd.replica.core.gtid_mode import Gtids
from mtsd.replica.guards.executed_beyond import (
    WORD,
    HeldGtids,
    count_missing,
    executed_beyond,
    refusal,
)

S = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OWN = "4f22fa47-71ca-11e1-9e33-c80aa9429562"

ordinary = settings(max_examples=200, deadline=None, derandomize=True)

plain_sets = st.frozensets(
    st.tuples(st.sampled_from([S, OWN]), st.sampled_from(["", "blue"]), st.integers(1, 12))
)
steps = st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(1, 3)), max_size=12)
"""Of one domain of a MariaDB: the server of each transaction, and by how much its number grows."""


def gtid_set(plain: frozenset[tuple[str, str, int]]) -> GtidSet:
    result = GtidSet()
    for uuid, tag, number in plain:
        result.add(Gtid(uuid, number, tag))
    return result


@ordinary
@given(plain_sets, plain_sets, plain_sets)
def test_what_both_have_executed_and_the_position_lacks(
    held: frozenset[tuple[str, str, int]],
    source: frozenset[tuple[str, str, int]],
    covered: frozenset[tuple[str, str, int]],
) -> None:
    found = executed_beyond(gtid_set(held), gtid_set(source), gtid_set(covered))
    wanted = (held & source) - covered
    assert found == gtid_set(wanted)
    assert count_missing(found, gtid_set(covered)) == len(wanted)
    every = HeldGtids(gtid_set(held)), gtid_set(covered), "binlog.000001:4", gtid_set(source)
    for mode in (Gtids.OFF, Gtids.MIRROR):
        refused = refusal(mode, *every)
        assert isinstance(refused, Refused) == bool(wanted)
        # What the message offers is no longer refused.
        assert refusal(mode, every[0], gtid_set(covered | wanted), *every[2:]) is None
        said = HeldGtids(gtid_set(held), despite=found)
        assert refusal(mode, said, *every[1:]) is None
    assert refusal(Gtids.PRESERVE, *every) is None


def test_the_message_has_what_to_do() -> None:
    held = GtidSet.parse(f"{S}:1-7,{OWN}:1-100")
    source = GtidSet.parse(f"{S}:1-9")
    said = str(
        refusal(Gtids.OFF, HeldGtids(held), GtidSet.parse(f"{S}:1-5"), "b.000002:99", source)
    )
    assert "executed 2 of the source's transactions after the position b.000002:99" in said
    assert f"mtsd position set gtid:{S}:1-7 --forward{options()};" in said
    assert said.endswith(f"mtsd position set gtid:{S}:1-5 {WORD}{options()}")
    assert refusal(Gtids.OFF, HeldGtids(held), None, "b.000002:99", source) is None


@ordinary
@given(steps, st.integers(0, 12), st.integers(0, 12), st.integers(1, 99))
def test_a_mariadb_that_was_a_replica(
    log: list[tuple[int, int]], applied: int, mark: int, own: int
) -> None:
    """It is refused exactly where its own replica has gone on after the mark."""
    state: dict[int, int] = {}
    numbers = [0]
    places = [""]
    for server, growth in log:
        numbers.append(numbers[-1] + growth)
        state.pop(server, None)
        state[server] = numbers[-1]
        places.append(f"0-{server}-{numbers[-1]}")
    source = GtidSet.parse(",".join(f"0-{server}-{number}" for server, number in state.items()))
    applied, mark = min(applied, len(log)), min(mark, len(log))
    # mtsd itself has written under the target's id, in the source's domain.
    held = mariadb_held(",".join(filter(None, (places[applied], f"0-9-{own}"))), places[applied], 9)
    covered = GtidSet.parse(places[mark])
    found = executed_beyond(held, source, covered)
    assert bool(found) == (applied > mark)
    if found:
        assert str(found) == places[applied]
        assert count_missing(found, covered) == numbers[applied] - numbers[mark]


def test_numbers_of_a_mariadb_that_do_not_grow_tell_nothing() -> None:
    source = GtidSet.parse("0-1-1000,0-2-5")
    held = GtidSet.parse("0-1-1000")
    assert not executed_beyond(held, source, GtidSet.parse("0-2-5"))
    assert executed_beyond(held, GtidSet.parse("0-2-5,0-1-1000"), GtidSet.parse("0-2-5"))


def test_another_family_has_nothing_in_common() -> None:
    mysql, mariadb = GtidSet.parse(f"{S}:1-5"), GtidSet.parse("0-1-7")
    assert not executed_beyond(mysql, mariadb, GtidSet())
    assert not executed_beyond(mariadb, mysql, GtidSet())
