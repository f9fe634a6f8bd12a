"""What can go wrong, by what has to be done about it."""

import errno
import re
from typing import Final

from mtsd.model.error_numbers import ER
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.model.position import Position


class MtsdError(Exception):
    """Base class of the errors that mtsd raises itself."""

    group: FailedGroup | None = None
    """The group that stops the replica, if a group does."""
    number: int = 0
    """The server's error number; 0 if no server has said anything."""


class NeedsPersonError(MtsdError):
    """Replication cannot continue until a person has intervened: exit status 3."""

    def __init__(self, message: str = "", *, group: FailedGroup | None = None) -> None:
        super().__init__(message)
        self.group = group


class BinlogError(NeedsPersonError):
    """The binary log is damaged or has an unknown format.

    `position` is the end of the last valid event, if known.
    """

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message if position is None else f"{message} (after {position})")
        self.message = message
        self.position = position


class NotSupportedError(NeedsPersonError):
    """The event is valid and known, but this version does not apply it."""


class ConnectionLostError(MtsdError):
    """The connection to a server ended or fell silent; connecting again may help.

    `server` is "source" or "target".
    """

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(self._worded(server, reason))
        self.server = server
        self.reason = reason

    def _worded(self, server: str, reason: str) -> str:
        return f"connection to the {server} lost: {reason}"


class CannotConnectError(ConnectionLostError):
    """A server cannot be reached, or not now: there was no connection that could be lost."""

    def _worded(self, server: str, reason: str) -> str:
        return f"cannot connect to the {server}: {reason}"


class ServerError(MtsdError):
    """A server answered with an error packet: its number, SQLSTATE and text."""

    def __init__(self, number: int, sqlstate: str, text: str) -> None:
        super().__init__(number, sqlstate, text)
        self.number = number
        self.sqlstate = sqlstate
        self.text = text
        self.server = ""
        """The server that it came from, such as "target 127.0.0.1:3307"."""
        self.warnings = ""
        """What SHOW WARNINGS returned after it, if that was asked."""
        self.remedy = ""
        """What a person has to do about it, a sentence without its full stop, if that is known
        where it occurs: the number does not tell."""
        self.leaves_changes = False
        """Whether a ROLLBACK could not undo all of it: non-transactional tables have changed."""
        self._text = text
        self._is_concealed = False

    def __str__(self) -> str:
        # One that is met before the login has none.
        state = f" ({self.sqlstate})" if self.sqlstate else ""
        return f"error {self.number}{state}: {self.text}"

    def conceal(self) -> None:
        """Leave out what the server quotes: a part of a statement that holds a password.

        The name of a plugin is none.
        """
        self._is_concealed = self.number != ER.PLUGIN_IS_NOT_LOADED
        if not self._is_concealed:
            return
        self.text = without_quoted(self.text)
        self.args = self.number, self.sqlstate, self.text
        self.warnings = without_quoted(self.warnings)

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Tell whether the server's text contains something, also what is not shown of it."""
        return pattern.search(self._text) is not None

    def fit(self, text: str) -> str:
        """Return another text of the server about the same statement, fit to be shown."""
        return without_quoted(text) if self._is_concealed else text


_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})


def system_reason(error: OSError) -> str:
    """Return a system's error in words, with what to do where it is about this process itself."""
    reason = error.strerror or str(error)
    if error.errno in _NO_DESCRIPTORS:
        reason += ": let mtsd open more files (LimitNOFILE of its unit, or ulimit -n)"
    return reason


_QUOTED = re.compile(r"""(?<![A-Za-z])['"`](?:.*['"`]|.*)""", re.DOTALL)


def without_quoted(text: str) -> str:
    """Return a server's text without what is between its first and its last quote.

    A syntax error quotes 80 characters of the statement, which may have quotes of their own; in
    every language of MySQL and MariaDB they are between quotes. If there is only one, what follows
    it was cut off; one behind a letter is an apostrophe, and begins nothing.
    """
    return _QUOTED.sub("'…'", text, count=1)


class ApplyError(NeedsPersonError):
    """A group could not be applied: the replica stops, and a person has to look into it.

    The message is complete: position, GTID, databases, worker, the server's error, the statement
    or tables, and whether later groups have already been applied.
    """
