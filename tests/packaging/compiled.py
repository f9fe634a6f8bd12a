"""The compiled wheel, and a copy of the project that has its modules in place of the pure ones.

`python -m tests.packaging.compiled FOLDER` makes that copy, in which the tests are run then.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.packaging.building import build
from tests.packaging.locations import PROJECT
from tests.packaging.toolchain import toolchain
from tests.servers.provision import CACHE, alone

_KEPT: Final = 8
"""How many wheels stay in the cache, for as many states of the sources."""


def build_wheel(into: Path) -> Path:
    """Build it with the locked backend; raises BuildError, CalledProcessError and AptError."""
    return build("wheel", PROJECT, into, {**toolchain(), "COMPILE_MTSD": "1"})


def provide_wheel(home: Path = CACHE / "wheels", project: Path = PROJECT) -> Path:
    """Return the wheel of these sources for tests, from the cache if it has been built before.

    What Python's modules do is the same however C is optimized. Neither to optimize it nor to
    describe it to a debugger spares more than a minute. Safe to be called by several processes at
    once; those of other sources do not wait. Raises as `build_wheel`.
    """
    folder = home / digest_of(project)
    making = home / ".made" / folder.name
    with alone(making):
        # Who has left these was killed: nobody else has this lock.
        for left in making.glob("partial-*"):
            shutil.rmtree(left)
        if not folder.is_dir():
            variables = {**toolchain(), "COMPILE_MTSD": "1"}
            variables |= {"MYPYC_OPT_LEVEL": "0", "MYPYC_DEBUG_LEVEL": "0"}
            with TemporaryDirectory(dir=making, prefix="partial-") as partial:
                made = Path(partial) / "wheel"
                made.mkdir()
                build("wheel", project, made, variables)
                made.rename(folder)
        os.utime(folder)
        (wheel,) = folder.iterdir()
    for old in sorted(home.glob("[!.]*"), key=lambda each: each.stat().st_mtime)[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(making.with_name(old.name), ignore_errors=True)
    return wheel


def digest_of(project: Path) -> str:
    """Return what tells two states of everything that is built, or builds, apart."""
    told = hashlib.sha256(sys.version.encode())
    names = ("pyproject.toml", "hatch_build.py", "requirements-build.lock", "README.md", "LICENSE")
    paths = [*(project / "mtsd").rglob("*"), *(project / name for name in names)]
    for path in sorted(path for path in paths if path.is_file() and path.suffix != ".pyc"):
        told.update(f"{path.relative_to(project)} {path.stat().st_size}\n".encode())
        told.update(path.read_bytes())
    return told.hexdigest()[:32]


def make_project(into: Path, wheel: Path) -> None:
    """Make the copy; `into` must not exist. The servers in the cache are the same."""
    # All that begins with a dot is made by a tool, but for .ci and the like, which no test reads.
    shutil.copytree(PROJECT, into, ignore=shutil.ignore_patterns(".*", "__pycache__", "mtsd"))
    (into / ".cache").symlink_to(CACHE)
    shutil.unpack_archive(wheel, into, "zip")


if __name__ == "__main__":
    make_project(Path(sys.argv[1]), provide_wheel())
