"""Creates the project's environment; `scripts/setup` runs it, with the standard library only.

With `--spark` it also installs what the data pipeline needs, and Java if the machine has none. A
stamp in `.venv` records what it was created from, so that a second run is
quick. pip's own settings (index, certificates, proxy) are the machine's.
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

from scripts.java import provide_java
from tests.servers import pip
from tests.servers.apt import AptError, PrivateApt
from tests.servers.provision import CACHE, provide

PROJECT: Final = Path(__file__).resolve().parents[1]
VENV: Final = PROJECT / ".venv"
PYTHON: Final = VENV / "bin" / "python"
STAMP: Final = VENV / "made-from"
LOCK: Final = PROJECT / "requirements-dev.lock"
SPARK_STAMP: Final = VENV / "made-from-spark"
SPARK_LOCK: Final = PROJECT / "requirements-spark.lock"

COMMAND: Final = '#!/bin/sh\nexec "$(dirname "$0")/python" -m mtsd "$@"\n'


def main(*options: str) -> None:
    """Create what is missing; several may run at once, but only one does the work."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = hashlib.sha256(LOCK.read_bytes() + str(PROJECT).encode()).hexdigest()
        if not is_made(stamp):
            print(f"environment: creating {VENV.name} from {LOCK.name}", file=sys.stderr)
            shutil.rmtree(VENV, ignore_errors=True)
            install(LOCK)
            make_importable()
            STAMP.write_text(stamp)
        provide()
        if "--spark" in options:
            add_spark()


def add_spark() -> None:
    """Install the extra `spark` and, if need be, Java; raises CalledProcessError and AptError."""
    java = provide_java()
    program = VENV / "bin" / "java"
    program.unlink(missing_ok=True)
    if java is not None:
        program.symlink_to(java)
    stamp = hashlib.sha256(SPARK_LOCK.read_bytes()).hexdigest()
    if not SPARK_STAMP.exists() or SPARK_STAMP.read_text() != stamp:
        print("environment: adding Spark, half a gigabyte; a minute or two", file=sys.stderr)
        install(SPARK_LOCK)
        SPARK_STAMP.write_text(stamp)


def is_made(stamp: str) -> bool:
    """Return whether the environment exists, has this stamp, and its Python still runs."""
    try:
        if STAMP.read_text() != stamp:
            return False
        return subprocess.run([PYTHON, "-c", ""], check=False).returncode == 0
    except OSError:
        return False


def install(lock: Path) -> None:
    """Install the packages of a lock file, in an environment that is created if need be.

    Raises CalledProcessError and AptError.
    """
    command = pip.install(lock)
    has_pip = importlib.util.find_spec("ensurepip") is not None
    if not PYTHON.exists():
        options = () if has_pip else ("--without-pip",)
        subprocess.run([sys.executable, "-m", "venv", *options, VENV], check=True)
    if has_pip:
        subprocess.run([PYTHON, "-m", "pip", *command], check=True)
        return
    # Debian and Ubuntu ship it in a separate package. A wheel of pip runs without installation.
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
        main(*sys.argv[1:])
    except (AptError, subprocess.CalledProcessError) as failure:
        sys.exit(f"setup: {failure}")
