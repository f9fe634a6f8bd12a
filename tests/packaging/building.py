"""Wheel and sdist, built with the locked backend, and so without the network."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


class BuildError(AssertionError):
    """The backend has ended with an error; the message is what it said."""


def build(kind: str, project: Path, into: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Build the wheel or sdist of a folder, with what is told in its environment; or BuildError."""
    options = ["--target", kind, "--directory", str(into)]
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *options],
        cwd=project, env={**os.environ, **(environ or {})}, capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise BuildError(done.stdout + done.stderr)
    (made,) = into.iterdir()
    return made
