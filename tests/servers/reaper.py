"""Ends the servers, and removes the folders, of a process that died without doing so.

The reaper is a process of its own that reads a pipe held by the process that starts servers. The
pipe's end is that process's end, however it came: then every mysqld still registered is killed.
The kernel's parent-death signal would not do: it comes when the starting *thread* ends.

One line of JSON a change: [folder, pid], pid 0 while the folder has no process, null to forget it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path


def register(folder: Path, pid: int | None) -> None:
    """Say which process (0: none) works in `folder`; None: the folder is gone."""
    pipe = _reaper().stdin
    if pipe is None:
        raise RuntimeError("the reaper was started without a pipe")
    pipe.write(json.dumps([str(folder), pid]) + "\n")
    pipe.flush()


@cache
def _reaper() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        # Ctrl-C goes to a whole process group; the reaper must outlive it.
        start_new_session=True,
    )


def reap(lines: Iterable[str]) -> None:
    """Follow the registrations to their end, then clean up what is left."""
    left: dict[str, int] = {}
    for line in lines:
        folder, pid = json.loads(line)
        if pid is None:
            left.pop(folder, None)
        else:
            left[folder] = pid
    for pid in filter(None, left.values()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    reap(sys.stdin)
