"""How a command reports an error."""

from mtsd.cli.output import report
from mtsd.model.errors import ServerError
from mtsd.model.outcome.exit_status import ExitStatus


def complain(error: Exception | str, exit_status: ExitStatus) -> ExitStatus:
    """Write an error to standard error, on one line; return the exit status."""
    if isinstance(error, OSError) and error.filename:
        error = f"{error.filename}: {error.strerror}"
    elif isinstance(error, ServerError):
        # A command that reads a local file needs nothing that talks to servers.
        from mtsd.wire.refusal import explained  # noqa: PLC0415

        error = explained(error)
    report(f"error: {' '.join(str(error).split())}")
    return exit_status
