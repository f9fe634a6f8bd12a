"""`mtsd run` with a fault at a named point: `python -m tests.replica.faulty_daemon FAULT CONFIG`.

FAULT is POINT:N, and at the Nth pass of POINT the process kills itself, as SIGKILL from outside
would; or POINT:N:hangs, and whoever passes stays there for ever; or POINT:N:waits, and it stays
until there is a file "go" beside CONFIG, after it has made a file "there"; or POINT:N:raises, and
an error is raised that nobody expects.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import uvloop

from mtsd.config import Loaded, load
from mtsd.daemon.life import Daemon
from mtsd.daemon.logging import set_up_logging
from mtsd.model.fault_points import FaultPoint


class UnexpectedError(Exception):
    """What `raises` raises."""


class FaultAt:
    """Counts the passes of one point and has its fault at the chosen one."""

    def __init__(self, point: FaultPoint, passes: int, kind: str, folder: Path) -> None:
        self._point = point
        self._left = passes
        self._kind = kind
        self._folder = folder

    async def __call__(self, point: FaultPoint) -> None:
        if point is not self._point:
            return
        self._left -= 1
        if self._left > 0:
            return
        if self._kind == "hangs":
            await asyncio.Event().wait()
        if self._kind == "waits":
            if self._left == 0:
                (self._folder / "there").touch()
                while not (self._folder / "go").exists():  # noqa: ASYNC110 - another process makes it
                    await asyncio.sleep(0.02)
            return
        if self._kind == "raises":
            raise UnexpectedError(point)
        # What was sent just before is on its way: the server must be able to receive it.
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Run the daemon with the fault."""
    name, passes, kind = (sys.argv[1] + "::").split(":")[:3]

    def read() -> Loaded:
        return load(Path(sys.argv[2]), {}, os.environ)

    settings = read().settings
    set_up_logging(settings.log)
    reached = FaultAt(FaultPoint(name), int(passes or 1), kind, Path(sys.argv[2]).parent)

    async def live() -> int:
        return await Daemon(settings, os.environ, read, reached=reached).run()

    return uvloop.run(live())


if __name__ == "__main__":
    sys.exit(main())
