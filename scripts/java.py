"""A Java that Spark 4 runs on: the machine's own, else Debian's packages in the project's cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.servers.apt import AptError, PrivateApt
from tests.servers.provision import CACHE, alone

VERSIONS: Final = (17, 21)
"""What Spark 4 supports, the preferred one first."""

REMEDY: Final = "install Java 17 or 21, or set JAVA_HOME to one"


def provide_java() -> Path | None:
    """Return the `java` program to put on the PATH; None if the machine's own is fit for Spark.

    Raises AptError if there is none and none can be downloaded, or if JAVA_HOME is another.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        own = _version(str(Path(home) / "bin" / "java"))
        if own not in VERSIONS:
            what = "has no bin/java that runs" if own is None else f"is Java {own}"
            raise AptError(f"JAVA_HOME={home} {what}; Spark needs another: {REMEDY}")
        return None
    if _version("java") in VERSIONS:
        return None
    cache = CACHE / "java"
    with alone(cache):
        return next(iter(_programs(cache)), None) or _download(cache)


def _version(program: str) -> int | None:
    """Return the major version of a `java` program, None if it does not run."""
    if shutil.which(program) is None:
        return None
    asked = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', asked.stderr)
    return int(found[1]) if found and not asked.returncode else None


def _programs(root: Path) -> list[Path]:
    return sorted(root.glob("*/usr/lib/jvm/java-[0-9][0-9]-openjdk*/bin/java"))


def _download(cache: Path) -> Path:
    print("Java: downloading Debian's packages into the project's cache", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".partial-") as partial:
        tree = Path(partial) / "tree"
        with PrivateApt(Path(partial), own_release=True) as apt:
            known = set(apt.names("openjdk-"))
            names = [f"openjdk-{version}-jre-headless" for version in VERSIONS]
            name = next((name for name in names if name in known), None)
            if name is None:
                raise AptError(f"this release has neither {' nor '.join(names)}: {REMEDY}")
            # What it depends on is what Python and its packages need as well.
            apt.unpack([name], tree, dependencies=False)
        _keep_links_inside(tree)
        tree.rename(cache / name)
    (program,) = _programs(cache)
    if _version(str(program)) is None:
        raise AptError(f"Debian's {name} does not run on this machine: {REMEDY}")
    return program


def _keep_links_inside(tree: Path) -> None:
    """Make the links to Java's files in /etc point to those under `tree`."""
    for link in tree.glob("usr/lib/jvm/**/*"):
        if link.is_symlink() and (points_to := link.readlink()).is_absolute():
            inside = tree / points_to.relative_to("/")
            if inside.exists():
                link.unlink()
                link.symlink_to(os.path.relpath(inside, link.parent))
