"""`mtsd run` with a fault at a named point: `python -m tests.replica.faulty_daemon POINT:N CONFIG`.

At the Nth pass of POINT the process kills itself, as SIGKILL from outside would.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import uvloop

from mtsd.config import load
from mtsd.daemon.life import Daemon
from mtsd.daemon.logging import set_up_logging
from mtsd.model.fault_points import FaultPoint


class KilledAt:
    """Counts the passes of one point and kills the process at the chosen one."""

    def __init__(self, point: FaultPoint, passes: int) -> None:
        self._point = point
        self._left = passes

    async def __call__(self, point: FaultPoint) -> None:
        if point is not self._point:
            return
        self._left -= 1
        if self._left <= 0:
            # What was sent just before is on its way: the server must be able to receive it.
            await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Run the daemon with the fault."""
    name, _, passes = sys.argv[1].partition(":")
    settings = load(Path(sys.argv[2])).settings
    set_up_logging(settings.log)
    reached = KilledAt(FaultPoint(name), int(passes or 1))

    async def live() -> int:
        return await Daemon(settings, {}, reached=reached).run()

    return uvloop.run(live())


if __name__ == "__main__":
    sys.exit(main())
