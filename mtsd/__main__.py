"""`python -m mtsd`, and the command `mtsd`."""

import sys

from mtsd.daemon.signals import hold


def main() -> int:
    """Run a command and return its exit status.

    Python takes a fraction of a second to import what a daemon consists of. A signal that arrives
    in the meantime waits until the daemon can stop gracefully, or reload its configuration.
    """
    if sys.argv[1:2] == ["run"]:
        hold()
    from mtsd.cli.main import main as run_command  # noqa: PLC0415

    return run_command()


if __name__ == "__main__":
    sys.exit(main())
