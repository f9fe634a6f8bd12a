"""What a move does, line by line with times: to the terminal, and to a file that is kept."""

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from mtsd.model.errors import NeedsPersonError
from mtsd.operations.move.steps import Act, MoveStatement, MoveStep

_MODE: Final = 0o600


class Record:
    """Says each line with `tell`, and writes it to `file` if there is one.

    Every line is on the disk before the next act: what is there after a crash has happened. Raises
    NeedsPersonError if the file cannot be made. Later on a terminal that is gone, or a full disk,
    raises nothing: servers that are left half way are worse than a report that lacks its end.
    """

    def __init__(self, tell: Callable[[str], None], file: Path | None = None) -> None:
        self._tell = tell
        self.file = file
        if file is None:
            return
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        except OSError as error:
            raise NeedsPersonError(
                f"the report {file} cannot be written: {error.strerror}; name another with --report"
            ) from None
        os.close(descriptor)

    def say(self, text: str) -> None:
        """Write a line to both."""
        self._show(text)
        self.keep(text)

    def plan(self, steps: Sequence[MoveStep]) -> None:
        """Say what would be sent, and where."""
        for number, step in enumerate(steps, 1):
            self.say(f"{number}. {step.name}")
            for act in step.acts:
                self.say(f"   {in_words(act)}")
            for act in step.undo:
                self.say(f"   if it has to be put back: {in_words(act)}")

    def keep(self, text: str) -> None:
        """Write a line to the file only."""
        if self.file is None:
            return
        time = datetime.now(UTC).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        try:
            with self.file.open("a", encoding="utf-8", errors="replace") as out:
                out.write(f"{time}Z  {text}\n")
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            file, self.file = self.file, None
            self._show(f"the report {file} ends here, and the move goes on: {error.strerror}")

    def _show(self, text: str) -> None:
        # The terminal of a session that was cut off, or a pipe that nobody reads.
        with contextlib.suppress(OSError):
            self._tell(text)


def in_words(act: Act) -> str:
    """Return what is sent, and where, without passwords; or what mtsd does."""
    return f"on the {act.server}: {act.shown}" if isinstance(act, MoveStatement) else act.words


def default_file(command: str) -> Path:
    """Return the file of a command that begins now, in the folder where it was started."""
    return Path(f"mtsd-{command}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.txt")
