"""The exit statuses of every command."""

import enum


class ExitStatus(enum.IntEnum):
    """What a command's end means to whoever called it."""

    DONE = 0
    """Done; of `mtsd run`: stopped gracefully; of `mtsd status`: a daemon runs."""
    FAILED = 1
    """An unexpected failure, after which systemd starts a daemon again."""
    BAD_USAGE = 2
    """Bad usage or configuration."""
    NEEDS_PERSON = 3
    """Refused, or replication stopped: a person has to do something first."""
    NOT_RUNNING = 4
    """Of `mtsd status`: no daemon runs."""
