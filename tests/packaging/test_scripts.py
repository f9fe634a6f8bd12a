"""What the scripts say of themselves, before they do anything."""

import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
NAMES = [path.name for path in sorted(SCRIPTS.iterdir()) if path.is_file() and not path.suffix]


@pytest.mark.parametrize("name", NAMES)
def test_help_is_printed_and_nothing_is_done(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/bash", SCRIPTS / name, "--help"],
        cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: scripts/{name}")
    assert "#" not in done.stdout


@pytest.mark.parametrize("name", ["setup", "audit"])
def test_an_unknown_option_is_refused(name: str) -> None:
    done = subprocess.run(
        [SCRIPTS / name, "--sparc"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"{name}: unknown: --sparc; see scripts/{name} --help\n"
