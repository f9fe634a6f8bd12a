"""Each key alone; what is tested follows from the model, so that no key can be forgotten."""

import pytest

from mtsd.config import FIELDS, ConfigurationError, Problem, load
from mtsd.config.kinds import choices, is_path, is_secret, limits
from mtsd.config.settings import SECTIONS
from tests.config.conftest import Write
from tests.config.wrong_values import NUMBERS, WORDS, WRONG_VALUES, kind_of

WRONG_TYPES = {
    bool: ('"true"', "1", "0.5", "[]", "{ a = 1 }"),
    int: ('"7"', "true", "7.0", "[7]", "{ a = 1 }"),
    float: ('"7.0"', "true", "[7.0]", "{ a = 1 }", "07:32:00"),
    str: ("7", "true", "7.0", '["a"]', "{ a = 1 }", "1979-05-27"),
    tuple: ('"a"', "7", "false", "{ a = 1 }", "[1.5]", "[[[]]]", "[{ a = 1 }]"),
}


def only_problem(write: Write, key: str, value: str) -> Problem:
    section, name = key.split(".")
    path = write(f"[{section}]\n{name} = {value}\n")
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    (problem,) = {problem.key.split("[")[0]: problem for problem in caught.value.problems}.values()
    assert problem.key.split("[")[0] == key
    assert problem.found.startswith("found ")
    assert problem.allowed.startswith("allowed is ")
    assert problem.origin == f"file {path}"
    assert "\n" not in str(problem)
    return problem


@pytest.mark.parametrize("key", FIELDS)
def test_a_wrong_type_is_refused(key: str, write: Write) -> None:
    for value in WRONG_TYPES[kind_of(key)]:
        only_problem(write, key, value)


@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_out_of_range_is_refused(key: str, write: Write) -> None:
    bounds = limits(FIELDS[key])
    assert bounds, "every number has a least and a greatest value"
    low, high = bounds
    for value in (low - 1, high + 1):
        problem = only_problem(write, key, str(value))
        assert f"from {low} to {high}" in problem.allowed
        assert problem.found == f"found {value}"
    if FIELDS[key].annotation is float:
        only_problem(write, key, "nan")
        only_problem(write, key, "inf")


@pytest.mark.parametrize("key", NUMBERS)
def test_the_ends_of_a_range_are_within(key: str) -> None:
    section, name = key.split(".")
    for value in limits(FIELDS[key]) or ():
        assert getattr(SECTIONS[section](**{name: value}), name) == value


@pytest.mark.parametrize("key", WORDS)
def test_a_word_that_is_not_in_the_list_is_refused(key: str, write: Write) -> None:
    for value in ("no_such_word", "", choices(FIELDS[key])[0].upper()):
        problem = only_problem(write, key, f'"{value}"')
        assert problem.found == f'found "{value}"'
        for word in choices(FIELDS[key]):
            assert f'"{word}"' in problem.allowed


@pytest.mark.parametrize("key", WORDS)
def test_every_word_of_the_list_is_taken(key: str) -> None:
    section, name = key.split(".")
    for word in choices(FIELDS[key]):
        assert getattr(SECTIONS[section](**{name: word}), name) == word


@pytest.mark.parametrize("key", WRONG_VALUES)
def test_a_wrong_text_or_list_is_refused(key: str, write: Write) -> None:
    for value in WRONG_VALUES[key]:
        only_problem(write, key, value)


def test_every_key_has_its_wrong_values() -> None:
    # Any text may be a password.
    covered = {*NUMBERS, *WORDS, *WRONG_VALUES, "source.password", "target.password"}
    assert covered == {key for key, field in FIELDS.items() if field.annotation is not bool}


def test_everything_that_is_wrong_is_said_at_once(write: Write) -> None:
    text = ""
    for section in SECTIONS:
        text += f"[{section}]\n"
        for key in FIELDS:
            if key.startswith(f"{section}."):
                text += f"{key.split('.')[1]} = {WRONG_TYPES[kind_of(key)][0]}\n"
    with pytest.raises(ConfigurationError) as caught:
        load(write(text))
    assert {problem.key for problem in caught.value.problems} == set(FIELDS)
    assert len(str(caught.value).splitlines()) == len(FIELDS)


def test_secrets_and_paths_are_known_as_such() -> None:
    for key, field in FIELDS.items():
        assert is_secret(field) == key.endswith(".password")
        named = key.endswith(
            ("_file", "_socket", ".socket", ".tls_ca", ".tls_cert", ".tls_key", "_public_key")
        ) and not key.endswith(".get_public_key")
        assert is_path(field) == named
