"""How a command reports an error."""

import sys

from mtsd.cli.printable import printable
from mtsd.model.exit_status import ExitStatus


def complain(error: Exception | str, exit_status: ExitStatus) -> ExitStatus:
    """Write an error to standard error, on one line; return the exit status."""
    print(f"mtsd: error: {printable(' '.join(str(error).split()))}", file=sys.stderr)
    return exit_status
