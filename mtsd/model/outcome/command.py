"""Commands of mtsd in messages: complete, so that a person only has to copy them.

A process has one configuration, so what it was started with is kept here once, for all messages.
"""

import shlex
from collections.abc import Sequence

_given: list[str] = []


def remember(options: Sequence[str]) -> None:
    """Note the options with which this process found its configuration; no secrets."""
    _given[:] = options


def options() -> str:
    """Return these options for the end of a command, with a blank before them; "" if none."""
    return "".join(f" {shlex.quote(option)}" for option in _given)


def command(*words: str) -> str:
    """Return a command that acts on the channel of this process: `mtsd`, `words`, its options."""
    return f"{shlex.join(['mtsd', *words])}{options()}"
