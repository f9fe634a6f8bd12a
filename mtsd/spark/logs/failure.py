"""Errors of a read as one line each, extracted from what Spark adds to them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mtsd.model.errors import MtsdError


class UnreadableBinlogError(MtsdError):
    """A binary log cannot be read as requested.

    The message names the option, or the file and the position. No other error leaves the data
    source, so that it can be recognized inside the errors that Spark raises.
    """


_MARK: Final = f"{UnreadableBinlogError.__module__}.{UnreadableBinlogError.__qualname__}: "
_LINE: Final = re.compile(re.escape(_MARK) + r"(.+)")


def unreadable(error: MtsdError, file: str = "") -> UnreadableBinlogError:
    """Return an error about a file or an option as the one that leaves the data source."""
    if isinstance(error, UnreadableBinlogError):
        return error
    # A message may quote something that contains line breaks, such as a statement.
    text = " ".join(str(error).split())
    return UnreadableBinlogError(text if not file or file in text else f"{file}: {text}")


@contextmanager
def one_line(file: str = "") -> Iterator[None]:
    """Raise every MtsdError as an UnreadableBinlogError, without its cause."""
    try:
        yield
    except MtsdError as error:
        raise unreadable(error, file) from None


def failure_line(error: BaseException) -> str | None:
    """Return mtsd's message from an error that Spark raises; None if there is none."""
    match = _LINE.search(str(error))
    return match[1].strip() if match else None
