"""What is wrong with a configuration, one line per problem."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to fix.

    `key` is the key's path, or the name of a file or variable; `found` and `allowed` are phrases
    that never contain a secret; `origin` says where the value was given.
    """

    key: str
    found: str
    allowed: str
    origin: str

    def __str__(self) -> str:
        return f"{self.key}: {self.found}; {self.allowed} ({self.origin})"


class ConfigurationError(Exception):
    """The configuration cannot be used; the text has one line for each problem."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def shown(value: object, longest: int | None = 120) -> str:
    """Format a value much as TOML does, on one line, cut at `longest` characters if not None."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    # JSON does not escape these, but a terminal or a log should not get them.
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"
