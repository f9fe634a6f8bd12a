"""What is gone through of small worlds."""

from itertools import product

from tests.schedule.worlds.whole_worlds import ONE_IN, some


def test_a_sample_has_every_item_at_every_place() -> None:
    every = list(product("abcdef", repeat=3))
    sample = some(every, whole=False)
    assert sample == some(every, whole=False)
    assert [each for each in every if each in sample] == sample
    assert len(every) / ONE_IN <= len(sample) <= len(every) / 5
    assert {item for world in sample for item in enumerate(world)} == set(
        product(range(3), "abcdef")
    )
    assert some("a", whole=False) == ["a"]


def test_the_whole_is_the_whole() -> None:
    every = list(product("ab", repeat=3))
    assert some(every, whole=True) == every
