"""What may change while running: decided for every key, and for nothing beside it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mtsd.config import FIELDS, HIDDEN, document, reloaded
from mtsd.config.kinds import is_secret
from mtsd.config.reloading import APPLIED, BESIDE_THE_WORKERS, FOR_NEXT_CONNECTION
from mtsd.config.settings import SECTIONS, Settings
from tests.config.generated import two_values

NEEDS_RESTART = {
    *(f"{section}.{name}" for section in ("source", "target")
      for name in ("host", "port", "unix_socket")),
    "source.server_id", "source.start", "source.allow_partial_history", "source.heartbeat_period",
    "source.semi_sync", "source.semi_sync_limit", "target.schema", "target.apply_mode",
    "target.binary_log", "target.gtid", "target.definer", "target.gtid_domain_id",
    "replica.channel", "replica.parallel_workers", "replica.parallel_type", "replica.consistency",
    "replica.exec_mode", "replica.newer_row_column", "replica.ddl", "replica.statements",
    "replica.split_transactions", "replica.on_error",
    "status.socket", "status.listen", "status.exporter_names", "status.tables",
    *(key for key in FIELDS if key.startswith("filter.")),
}  # fmt: skip


def settings_with(key: str, value: object) -> Settings:
    """Make settings of one key, whatever else is given."""
    section, _, name = key.partition(".")
    return Settings(**{section: SECTIONS[section](**{name: value})})


def two(key: str) -> tuple[Settings, Settings]:
    first, second = two_values(key)
    return settings_with(key, first), settings_with(key, second)


def test_every_key_is_of_one_kind() -> None:
    kinds = [APPLIED, FOR_NEXT_CONNECTION, NEEDS_RESTART]
    assert sorted(key for kind in kinds for key in kind) == sorted(FIELDS)


@pytest.mark.parametrize("key", FIELDS)
def test_one_changed_key_is_taken_over_or_named(key: str) -> None:
    in_force, read = two(key)
    change = reloaded(in_force, read)
    found = (change.applied, change.for_next_connection, change.need_restart)
    assert found == (
        (key,) if key in APPLIED else (),
        (key,) if key in FOR_NEXT_CONNECTION else (),
        (key,) if key in NEEDS_RESTART else (),
    )
    assert change.settings == (in_force if key in NEEDS_RESTART else read)
    # A second reading finds nothing new, or the same that is not in force yet.
    again = reloaded(change.settings, read)
    assert (again.applied, again.for_next_connection) == ((), ())
    assert again.need_restart == change.need_restart


def test_all_keys_at_once() -> None:
    both: list[dict[str, dict[str, object]]] = [{}, {}]
    for key in FIELDS:
        section, _, name = key.partition(".")
        for values, settings in zip(both, two(key), strict=True):
            values.setdefault(section, {})[name] = getattr(getattr(settings, section), name)
    in_force, read = (
        Settings(**{section: SECTIONS[section](**values[section]) for section in SECTIONS})
        for values in both
    )
    change = reloaded(in_force, read)
    applied = APPLIED - BESIDE_THE_WORKERS
    assert {*change.applied, *change.for_next_connection} == applied | FOR_NEXT_CONNECTION
    assert set(change.need_restart) == NEEDS_RESTART | BESIDE_THE_WORKERS
    old, new, now = document(in_force), document(read), document(change.settings)
    for key in FIELDS:
        assert now[key] == (old if key in NEEDS_RESTART | BESIDE_THE_WORKERS else new)[key]


def test_nothing_has_changed() -> None:
    change = reloaded(Settings(), Settings())
    assert change.settings == Settings()
    assert change.applied + change.for_next_connection + change.need_restart == ()


@pytest.mark.parametrize("key", [key for key, field in FIELDS.items() if is_secret(field)])
def test_a_changed_secret_is_named_and_not_shown(key: str) -> None:
    change = reloaded(settings_with(key, "geheim-1"), settings_with(key, "geheim-2"))
    assert change.for_next_connection == (key,)
    assert "geheim" not in repr(change)
    assert document(change.settings)[key] == HIDDEN
    section, _, name = key.partition(".")
    assert getattr(getattr(change.settings, section), name).get_secret_value() == "geheim-2"


def test_the_document_lists_them() -> None:
    document = Path(__file__).parents[2] / "docs" / "service.md"
    rows = {
        line.split("|")[1].strip(): set(re.findall(r"`([\w.]+)`", line.split("|")[2]))
        for line in document.read_text(encoding="utf-8").splitlines()
        if line.startswith(("| immediately", "| with the next"))
    }
    assert rows == {
        "immediately": {key.removeprefix("replica.") for key in APPLIED},
        "with the next connection to the server": {
            key.partition(".")[2] for key in FOR_NEXT_CONNECTION
        },
    }


@pytest.mark.parametrize("key", sorted(BESIDE_THE_WORKERS))
def test_what_fits_to_other_workers_comes_with_them(key: str) -> None:
    value = two_values(key)[0]
    before = Settings()
    with_it = settings_with(key, value)
    after = replace(with_it, replica=replace(with_it.replica, parallel_workers=2))
    change = reloaded(before, after)
    assert change.settings == before
    assert set(change.need_restart) == {"replica.parallel_workers", key}
    of_eventual = replace(before, replica=replace(before.replica, consistency="eventual"))
    of_partition = replace(with_it, replica=replace(with_it.replica, consistency="partition"))
    change = reloaded(of_eventual, of_partition)
    assert change.settings == of_eventual
    assert set(change.need_restart) == {"replica.consistency", key}
