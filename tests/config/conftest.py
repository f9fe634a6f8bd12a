from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a configuration file that only its owner can read."""

    def write(text: str) -> Path:
        path = tmp_path / "mtsd.toml"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    return write
