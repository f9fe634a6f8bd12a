"""Creates the project's environment; `scripts/setup` runs it, with the standard library only.

A stamp in `.venv` records what it was created from, so that a second run is quick. pip's own
settings (index, certificates, proxy) are the machine's.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.servers import pip
from tests.servers.apt import AptError, PrivateApt
from tests.servers.provision import CACHE, provide

PROJECT: Final = Path(__file__).resolve().parents[1]
VENV: Final = PROJECT / ".venv"
PYTHON: Final = VENV / "bin" / "python"
STAMP: Final = VENV / "made-from"
LOCK: Final = PROJECT / "requirements-dev.lock"

COMMAND: Final = '#!/bin/sh\nexec "$(dirname "$0")/python" -m mtsd "$@"\n'


def main() -> None:
    """Create what is missing; several may run at once, but only one does the work."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = hashlib.sha256(LOCK.read_bytes() + str(PROJECT).encode()).hexdigest()
        if not is_made(stamp):
            print(f"environment: creating {VENV.name} from {LOCK.name}", file=sys.stderr)
            shutil.rmtree(VENV, ignore_errors=True)
            install()
            make_importable()
            STAMP.write_text(stamp)
        provide()


def is_made(stamp: str) -> bool:
    """Return whether the environment exists, has this stamp, and its Python still runs."""
    try:
        if STAMP.read_text() != stamp:
            return False
        return subprocess.run([PYTHON, "-c", ""], check=False).returncode == 0
    except OSError:
        return False


def install() -> None:
    """Create the environment with the locked packages; raises CalledProcessError and AptError."""
    command = pip.install(LOCK)
    if importlib.util.find_spec("ensurepip"):
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([PYTHON, "-m", "pip", *command], check=True)
        return
    # Debian and Ubuntu ship it in a separate package. A wheel of pip runs without installation.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", VENV], check=True)
    folder = VENV / "pip"
    with PrivateApt(folder) as apt:
        apt.unpack(["python3-pip-whl"], folder, dependencies=False)
        (wheel,) = folder.glob("usr/share/python-wheels/pip-*.whl")
        subprocess.run([PYTHON, wheel / "pip", *command], check=True)
    shutil.rmtree(folder)


def make_importable() -> None:
    """Put the project on the environment's path, without a build backend, and `mtsd` in its bin."""
    (packages,) = VENV.glob("lib/python3.*/site-packages")
    (packages / "mtsd-project.pth").write_text(f"{PROJECT}\n")
    command = VENV / "bin" / "mtsd"
    command.write_text(COMMAND)
    command.chmod(0o755)


if __name__ == "__main__":
    try:
        main()
    except (AptError, subprocess.CalledProcessError) as failure:
        sys.exit(f"setup: {failure}")
