"""What compiles C for this Python: the machine's own, or where it has none, one in the cache."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tests.packaging.locations import PROJECT
from tests.servers import pip
from tests.servers.apt import PrivateApt
from tests.servers.provision import CACHE, alone

_HOME: Final = CACHE / "toolchain"
_LOCK: Final = PROJECT / "requirements-compiler.lock"


def toolchain(*, home: Path = _HOME, own_only: bool = False) -> dict[str, str]:
    """Return the variables by which setuptools finds a compiler and headers; gets what is missing.

    With `own_only` nothing of the machine's is looked for. Raises CalledProcessError and AptError.
    """
    with alone(home):
        return _toolchain(home, own_only=own_only)


def _toolchain(home: Path, *, own_only: bool) -> dict[str, str]:
    variables: dict[str, str] = {}
    compiler = str(sysconfig.get_config_var("CC") or "cc").split()[0]
    if own_only or shutil.which(compiler) is None:
        zig = f"{_zig(home)} cc"
        variables = {"CC": zig, "LDSHARED": f"{zig} -shared"}
        variables["ZIG_GLOBAL_CACHE_DIR"] = str(home / "zig-cache")
    include = Path(sysconfig.get_path("include"))
    if own_only or not (include / "Python.h").is_file():
        headers = _headers(home, include)
        variables["CFLAGS"] = f"-I{headers} -I{headers.parent}"
    return variables


def _zig(home: Path) -> Path:
    """Install the compiler that PyPI has."""
    program = home / "ziglang" / "zig"
    if not program.is_file():
        words = pip.install(_LOCK, "--upgrade", "--target", str(home))
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    return program


def _headers(home: Path, include: Path) -> Path:
    """Unpack the headers of the distribution's Python, of the release that is installed."""
    found = home / "headers" / "usr" / "include" / include.name
    if not (found / "Python.h").is_file():
        with PrivateApt(home, own_release=True) as apt:
            apt.unpack([f"lib{include.name}-dev"], home / "headers", dependencies=False)
    return found
