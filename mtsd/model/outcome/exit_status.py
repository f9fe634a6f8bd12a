"""The exit statuses of every command."""

import enum


class ExitStatus(enum.IntEnum):
    """What the exit of a command means to its caller."""

    DONE = 0
    """Done. For `mtsd run`: stopped gracefully; for `mtsd status`: a daemon is running."""
    FAILED = 1
    """An unexpected failure, after which systemd restarts the daemon. For `mtsd status`: it cannot
    be told how the replica is."""
    BAD_USAGE = 2
    """Bad usage or configuration."""
    NEEDS_PERSON = 3
    """Refused, or replication stopped: a person has to do something first. For `mtsd status`: an
    error has stopped the last daemon."""
    NOT_RUNNING = 4
    """No daemon is running; for `mtsd status`: it was stopped gracefully, or there was none yet."""
    NOT_CONNECTED = 5
    """For `mtsd status`: a daemon is running, without a connection to the source or the target."""
