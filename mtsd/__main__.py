"""`python -m mtsd`, and the command `mtsd`."""

import os
import signal
import sys
from typing import Final

from mtsd.daemon.signals import hold

_STANDARD_ERROR: Final = 2


def main() -> int:
    """Run a command and return its exit status.

    Python takes a fraction of a second to import what a daemon consists of. A signal that arrives
    in the meantime waits until the daemon can stop gracefully, or reload its configuration.
    """
    _take_standard_descriptors()
    if sys.argv[1:2] == ["run"]:
        hold()
    try:
        from mtsd.cli.main import main as run_command  # noqa: PLC0415

        return run_command()
    except KeyboardInterrupt:
        os.write(_STANDARD_ERROR, b"mtsd: interrupted\n")
        # As the signal's own end: a shell's loop around the command ends, too.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        raise


def _take_standard_descriptors() -> None:
    """Open those of 0 to 2 that are closed, on nothing.

    Otherwise a connection to a server would get one: what a library writes to standard error would
    go there, and the event loop ends the process (SIGABRT) where it is to close such a descriptor.
    """
    while (taken := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        pass
    os.close(taken)


if __name__ == "__main__":
    sys.exit(main())
