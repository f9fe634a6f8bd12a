"""The passwords of the accounts that a move is given: they are never on the command line."""

import argparse
from importlib import import_module

import pytest

from mtsd.cli.arguments import load_configuration
from mtsd.cli.main import MOVES, module_of
from mtsd.cli.moves.moving import account
from tests.config.conftest import Write

ACCOUNTS = [
    ("takeover", "admin"), ("handover", "admin"), ("handover", "replica"),
    ("switchover", "admin"), ("switchover", "admin-source"),
]  # fmt: skip


def test_every_move_is_here() -> None:
    assert {move for move, _ in ACCOUNTS} == MOVES


@pytest.mark.parametrize(("move", "option"), ACCOUNTS)
def test_a_password_in_the_environment_is_no_setting(
    write: Write, move: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = argparse.ArgumentParser()
    import_module(module_of(move)).register(parser.add_subparsers())
    words = [move, "--config", str(write("")), f"--{option}-user", "root"]
    if move == "switchover":
        words += ["--reverse-config", "back.toml"]
    args = parser.parse_args(words)
    variable = f"MTSD_{option.replace('-', '_').upper()}_PASSWORD"
    monkeypatch.setenv(variable, "geheim-4711")
    load_configuration(args)
    found = account(args, option)
    assert found is not None
    assert found.password == "geheim-4711"
