"""The compiled wheel, and a copy of the project that has its modules in place of the pure ones.

`python -m tests.packaging.compiled FOLDER` makes that copy, in which the tests are run then.
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.packaging.building import build
from tests.packaging.locations import PROJECT
from tests.packaging.toolchain import toolchain
from tests.servers.provision import CACHE


def build_wheel(into: Path) -> Path:
    """Build it with the locked backend; raises BuildError, CalledProcessError and AptError."""
    return build("wheel", PROJECT, into, {**toolchain(), "COMPILE_MTSD": "1"})


def make_project(into: Path, wheel: Path) -> None:
    """Make the copy; `into` must not exist. The servers in the cache are the same."""
    # All that begins with a dot is made by a tool, but for .ci and the like, which no test reads.
    shutil.copytree(PROJECT, into, ignore=shutil.ignore_patterns(".*", "__pycache__", "mtsd"))
    (into / ".cache").symlink_to(CACHE)
    shutil.unpack_archive(wheel, into, "zip")


if __name__ == "__main__":
    with TemporaryDirectory(prefix="mtsd-wheel-") as folder:
        make_project(Path(sys.argv[1]), build_wheel(Path(folder)))
