"""The exit statuses of every command."""

import enum


class ExitStatus(enum.IntEnum):
    """What the exit of a command means to its caller."""

    DONE = 0
    """Done. For `mtsd run`: stopped gracefully; for `mtsd status`: a daemon is running."""
    FAILED = 1
    """An unexpected failure, after which systemd restarts the daemon."""
    BAD_USAGE = 2
    """Bad usage or configuration."""
    NEEDS_PERSON = 3
    """Refused, or replication stopped: a person has to do something first."""
    NOT_RUNNING = 4
    """For `mtsd status`: no daemon is running."""
