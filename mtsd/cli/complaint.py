"""How a command says what has gone wrong."""

import sys


def complain(error: Exception, exit_status: int) -> int:
    """Write an error to standard error, on one line; return the exit status."""
    print(f"mtsd: error: {' '.join(str(error).split())}", file=sys.stderr)
    return exit_status
