"""What is gone through of small worlds."""

from itertools import product

from tests.schedule.worlds.whole_worlds import distinct, leading, some


def test_a_sample_has_every_item_at_every_place() -> None:
    every = list(product("abcdef", repeat=3))
    sample = some(every, one_in=8)
    assert sample == some(every, one_in=8)
    assert [each for each in every if each in sample] == sample
    assert len(every) / 8 <= len(sample) <= len(every) / 5
    assert {item for world in sample for item in enumerate(world)} == set(
        product(range(3), "abcdef")
    )
    assert some("a", one_in=8) == ["a"]


def test_the_whole_is_the_whole() -> None:
    every = list(product("ab", repeat=3))
    assert some(every, one_in=1) == every


def test_a_larger_sample_contains_the_smaller_one() -> None:
    every = list(product("abcdef", repeat=3))
    assert set(some(every, one_in=12)) < set(some(every, one_in=3))


def test_each_case_is_gone_through_on_the_compiled_modules() -> None:
    assert leading("abc", 2, whole=True) == ["a", "b", "c"]
    assert leading("abc", 2, whole=False) == ["a", "b"]


def test_of_two_streams_that_are_mirror_images_there_is_one() -> None:
    mirror = {"a": "b", "b": "a", "+": "+"}
    found = ["".join(items) for items in distinct("ab+", 2, mirror)]
    assert found == ["aa", "ab", "a+", "+a", "++"]
    every = ["".join(items) for items in product("ab+", repeat=2)]
    # What has a name in it that is not exchanged has no mirror image.
    assert ["".join(items) for items in distinct("ab+", 2, {})] == every
