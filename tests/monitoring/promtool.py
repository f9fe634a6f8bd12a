"""Prometheus and its judge of rules: the machine's, or Debian's package in the project's cache.

Each is unpacked into `.cache/promtool/` the first time that a test asks for it.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.servers.apt import PrivateApt
from tests.servers.provision import CACHE, alone

_HOME: Final = "promtool"


def program(name: str, cache: Path = CACHE) -> Path:
    """Return "promtool" or "prometheus". Raises AptError."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    home = cache / _HOME
    unpacked = home / name
    with alone(home):
        if not unpacked.exists():
            with tempfile.TemporaryDirectory(dir=home, prefix=".partial-") as partial:
                root = Path(partial)
                with PrivateApt(home, own_release=True) as apt:
                    apt.unpack(["prometheus"], root, dependencies=False)
                # The rest of the package is of no use here.
                (root / "usr" / "bin" / name).rename(unpacked)
    return unpacked


def judged(cases: Path) -> subprocess.CompletedProcess[str]:
    """Return what `promtool test rules` says of a file."""
    command = [str(program("promtool")), "test", "rules", str(cases)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
