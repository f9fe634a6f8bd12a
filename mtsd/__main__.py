"""`python -m mtsd`, and the command `mtsd`."""

import sys

from mtsd.daemon.signals import hold


def main() -> int:
    """Run a command; returns its exit status.

    Python needs a part of a second for what a daemon consists of. A signal that comes meanwhile
    waits until the daemon can stop in good order, or read its configuration again.
    """
    if sys.argv[1:2] == ["run"]:
        hold()
    from mtsd.cli.main import main as run_command  # noqa: PLC0415

    return run_command()


if __name__ == "__main__":
    sys.exit(main())
