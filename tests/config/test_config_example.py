"""config.example.toml says what the settings are."""

import tomllib
from pathlib import Path

import pytest

from mtsd.config import FIELDS, document, load
from mtsd.config.kinds import choices, limits
from mtsd.config.reloading import APPLIED
from mtsd.config.settings import SECTIONS, Settings

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"


@pytest.fixture(scope="module")
def comments() -> dict[str, str]:
    """Collect what the example says beside each key and on the lines that go on with it."""
    found: dict[str, str] = {}
    section = key = ""
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        text, _, comment = line.partition("#")
        if text.startswith("["):
            section = text.strip().strip("[]")
        elif text.strip() and section:
            key = f"{section}.{text.partition('=')[0].strip()}"
            found[key] = comment.strip()
        elif key and comment and line.startswith(" "):
            found[key] += f" {comment.strip()}"
    return found


def test_it_holds_every_key_in_order_with_its_default() -> None:
    example = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    written = {
        f"{section}.{name}": value
        for section, table in example.items()
        for name, value in table.items()
    }
    assert list(example) == list(SECTIONS)
    assert written == document(Settings())
    assert {key: type(value) for key, value in written.items()} == {
        key: type(value) for key, value in document(Settings()).items()
    }
    assert list(written) == list(FIELDS)


def test_it_loads_as_the_defaults(tmp_path: Path) -> None:
    copy = tmp_path / "config.toml"
    copy.write_bytes(EXAMPLE.read_bytes())
    loaded = load(copy)
    assert set(loaded.origins.values()) == {f"file {copy}"}
    assert loaded.warnings == ()
    copy.write_text("")
    assert loaded.settings == load(copy).settings


@pytest.mark.parametrize("key", FIELDS)
def test_it_says_what_is_allowed(key: str, comments: dict[str, str]) -> None:
    comment = comments[key]
    for word in choices(FIELDS[key]):
        assert word in comment
    for bound in limits(FIELDS[key]) or ():
        assert str(bound) in comment
    if FIELDS[key].annotation is float:
        assert "seconds" in comment
    if not key.startswith("filter."):
        assert "not yet" not in comment


def test_it_says_what_changes_while_running() -> None:
    head = EXAMPLE.read_text(encoding="utf-8").partition("[source]")[0]
    (text,) = [part for part in head.split("\n#\n") if "SIGHUP" in part]
    words = set(text.replace(",", " ").replace(".", " ").replace(";", " ").split())
    named = {key.partition(".")[2] for key in APPLIED if key.startswith("replica.")}
    assert named <= words
    everything = {key.partition(".")[2] for key in FIELDS if key.startswith("replica.")}
    assert words & everything == named
    assert {"[log]"} <= words
