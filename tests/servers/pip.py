"""pip as the project uses it: quiet, and for what a lock file names, by its hashes."""

from pathlib import Path
from typing import Final

_OPTIONS: Final = ("-qq", "--no-input", "--disable-pip-version-check", "--require-hashes")


def install(lock: Path, *options: str) -> list[str]:
    """Return the words behind `pip` that install the packages of a lock file."""
    return ["install", *_OPTIONS, *options, "--requirement", str(lock)]
