"""What is wrong with a configuration, one line for each thing."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to fix.

    `key` is the key's path, or the name of a file or variable; `found` and `allowed` are phrases
    that never hold a secret; `origin` says where the value was given.
    """

    key: str
    found: str
    allowed: str
    origin: str

    def __str__(self) -> str:
        return f"{self.key}: {self.found}; {self.allowed} ({self.origin})"


class ConfigurationError(Exception):
    """The configuration cannot be used; its text is one line for each problem."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def shown(value: object, longest: int | None = 120) -> str:
    """Write a value about as TOML does, on one line, cut at `longest` characters if not None."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    # JSON leaves these alone, and a terminal or a log would not.
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"
