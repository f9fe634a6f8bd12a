"""Debian packages unpacked into a folder, without root and without a trace on the machine.

apt-get runs with folders of its own and an empty status file, so it fetches every dependency;
`dpkg -x` unpacks without installing. The mirror, its proxy and its certificates are those of the
machine's own apt configuration.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

KEYRINGS: Final = tuple(
    Path("/usr/share/keyrings/debian-archive-keyring").with_suffix(suffix)
    for suffix in (".pgp", ".gpg")
)

# What every machine that has apt has anyway; a third of what would be unpacked.
NOT_UNPACKED: Final = frozenset({"bash", "coreutils", "dpkg", "perl", "tar", "util-linux"})


class AptError(RuntimeError):
    """Packages cannot be had; the message is one line for the person who waits for them."""


class PrivateApt:
    """A context manager: apt in folders of its own under `parent`, which go when it ends.

    On Debian the packages are those of `suite` (only sid has MySQL), from the machine's own
    mirror; on Ubuntu, which has other suites, and with `own_release`, those of the machine's own
    sources. Index files are fetched on the first use.
    """

    def __init__(self, parent: Path, *, own_release: bool = False, suite: str = "sid") -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix=".apt-", dir=parent))
        self._own_release = own_release
        self._suite = suite
        self._options: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def names(self, prefix: str) -> list[str]:
        """Return the names of the packages that begin with `prefix`."""
        self._refresh()
        return _run("apt-cache", *self._options, "pkgnames", prefix).split()

    def unpack(self, packages: list[str], root: Path, *, dependencies: bool = True) -> None:
        """Unpack `packages`, and what they depend on, under `root`; raises AptError."""
        self._refresh()
        archives = self._folder / "cache" / "archives"
        if dependencies:
            _run("apt-get", *self._options, "install", "--download-only", "-y", *packages)
        else:
            _run("apt-get", *self._options, "download", *packages, cwd=archives)
        root.mkdir(parents=True, exist_ok=True)
        for archive in sorted(archives.glob("*.deb")):
            if archive.name.partition("_")[0] not in NOT_UNPACKED:
                _run("dpkg", "-x", str(archive), str(root))
            archive.unlink()

    def _refresh(self) -> None:
        """Make the folders and fetch the index files, once."""
        if self._options:
            return
        if not (shutil.which("apt-get") and shutil.which("dpkg")):
            raise AptError("this machine has no apt-get and dpkg: only Debian and Ubuntu have")
        lists = self._folder / "lists" / "partial"
        archives = self._folder / "cache" / "archives" / "partial"
        for folder in (lists, archives):
            folder.mkdir(parents=True)
        status = self._folder / "status"
        status.touch()
        options = [
            f"Dir::State::Lists={lists.parent}",
            f"Dir::State::status={status}",
            f"Dir::Cache={archives.parent.parent}",
            "APT::Install-Recommends=false",
            "APT::Sandbox::User=",
            "Debug::NoLocking=1",
        ]
        source = None if self._own_release else suite_source(self._suite)
        if source is not None:
            sources = self._folder / "sources.list"
            sources.write_text(source + "\n")
            options += [f"Dir::Etc::sourcelist={sources}", "Dir::Etc::sourceparts=/dev/null"]
        self._options = ["-qq", *(word for option in options for word in ("-o", option))]
        try:
            _run("apt-get", *self._options, "-o", "APT::Update::Error-Mode=any", "update")
        except AptError as error:
            if source is None or any(keyring.exists() for keyring in KEYRINGS):
                raise
            raise AptError(
                f"no Debian keyring on this machine (package debian-archive-keyring): {error}"
            ) from None


def suite_source(wanted_suite: str) -> str | None:
    """Return the `sources.list` line for a suite on this machine's own mirror; None on Ubuntu.

    Raises AptError where the machine is a Debian whose sources name no Debian mirror.
    """
    release = platform.freedesktop_os_release()
    if "ubuntu" in {release["ID"], *release.get("ID_LIKE", "").split()}:
        return None
    codename = release.get("VERSION_CODENAME", "sid")
    # apt itself reads its configuration here: one-line and deb822 sources alike.
    targets = _run(
        "apt-get",
        "indextargets",
        "--no-release-info",
        "--format",
        "$(RELEASE) $(COMPONENT) $(REPO_URI)",
        "Identifier: Packages",
    )
    for wanted in (codename, "stable", "testing", "unstable", "sid", "oldstable"):
        for line in targets.splitlines():
            suite, component, mirror = line.split(" ", 2)
            if (suite, component) == (wanted, "main"):
                keyring = next((path for path in KEYRINGS if path.exists()), None)
                signed = f"[signed-by={keyring}] " if keyring else ""
                return f"deb {signed}{mirror} {wanted_suite} main"
    raise AptError(f"this machine's apt sources name no Debian mirror (suite {codename}, main)")


def _run(*command: str, cwd: Path | None = None) -> str:
    """Run apt or dpkg and return what it prints; raises AptError with its last words."""
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())[-600:]
        raise AptError(f"{command[0]} failed: {words}")
    return done.stdout
