"""What can go wrong, by what has to happen next."""

from mtsd.model.failed_group import FailedGroup
from mtsd.model.position import Position


class MtsdError(Exception):
    """The base of the errors that mtsd raises itself."""

    group: FailedGroup | None = None
    """The group without which the replica could go on, where it is a group that stops it."""


class NeedsPersonError(MtsdError):
    """Replication cannot go on until a person has done something: exit status 3."""

    def __init__(self, message: str = "", *, group: FailedGroup | None = None) -> None:
        super().__init__(message)
        self.group = group


class BinlogError(NeedsPersonError):
    """The binary log holds what cannot be read: damaged, or of a form that is not known.

    `position` is the end of the last sound event, where it is known.
    """

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message if position is None else f"{message} (after {position})")
        self.message = message
        self.position = position


class NotSupportedError(NeedsPersonError):
    """The event is sound and known, and this version does not apply it."""


class ConnectionLostError(MtsdError):
    """The connection to a server ended or fell silent; connecting again may help.

    `server` is "source" or "target".
    """

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"connection to the {server} lost: {reason}")
        self.server = server
        self.reason = reason


class ServerError(MtsdError):
    """A server answered with an error packet: its number, SQLSTATE and text."""

    def __init__(self, number: int, sqlstate: str, text: str) -> None:
        super().__init__(f"error {number} ({sqlstate}): {text}")
        self.number = number
        self.sqlstate = sqlstate
        self.text = text
        self.server = ""
        """Where it came from, such as "target 127.0.0.1:3307"."""
        self.warnings = ""
        """What SHOW WARNINGS said after it, where that was asked."""
        self.leaves_changes = False
        """Whether a ROLLBACK after it could not undo all: tables without transactions changed."""


class ApplyError(NeedsPersonError):
    """A group could not be applied: the replica stops, and a person has to look.

    The message is complete: position, GTID, databases, worker, what the server said, the statement
    or tables, and whether later groups have been applied already.
    """
