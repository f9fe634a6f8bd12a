"""Progress messages of long-running work on standard error."""

import sys
import time
from types import TracebackType
from typing import Self

from mtsd.cli.output import end_line, report, report_over

_OFTEN_S = 0.2
_SELDOM_S = 10.0


class ProgressLines:
    """Lines on standard error; on a terminal, a count is one line that is updated.

    A context manager, which ends that line.
    """

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._printed_at = 0.0
        self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_line()

    def say(self, what: str) -> None:
        """Write a line."""
        self._end_line()
        report(what)

    def count(self, what: str, done: int, of: int | None, unit: str) -> None:
        """Report progress: often on a terminal, otherwise occasionally and at the end."""
        now = time.monotonic()
        ended = done == of
        if now - self._printed_at < (_OFTEN_S if self._terminal else _SELDOM_S) and not ended:
            return
        self._printed_at = now
        total = f" of {of:,}" if of is not None else ""
        text = f"{what}: {done:,}{total} {unit}"
        if self._terminal:
            report_over(text)
            self._open = True
            if ended:
                self._end_line()
        else:
            report(text)

    def _end_line(self) -> None:
        if self._open:
            self._open = False
            end_line()
