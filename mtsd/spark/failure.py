"""What a person sees of a read that failed: the one line that says it, out of what Spark adds."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mtsd.model.errors import MtsdError


class UnreadableBinlogError(MtsdError):
    """A binary log cannot be read as it is asked for.

    The message is complete: the option, or the file and the position. It is the only error that
    leaves the data source, so that it can be told from others in what Spark makes of it.
    """


_MARK: Final = f"{UnreadableBinlogError.__module__}.{UnreadableBinlogError.__qualname__}: "
_LINE: Final = re.compile(re.escape(_MARK) + r"(.+)")


def unreadable(error: MtsdError, file: str = "") -> UnreadableBinlogError:
    """Return what mtsd says of a file, or of an option, as the error that leaves the source."""
    if isinstance(error, UnreadableBinlogError):
        return error
    # Whatever is in a message, such as a statement, must not break the line.
    text = " ".join(str(error).split())
    return UnreadableBinlogError(text if not file or file in text else f"{file}: {text}")


@contextmanager
def one_line(file: str = "") -> Iterator[None]:
    """Raise whatever mtsd has to say as an UnreadableBinlogError, without how it came about."""
    try:
        yield
    except MtsdError as error:
        raise unreadable(error, file) from None


def failure_line(error: BaseException) -> str | None:
    """Return what mtsd said, out of an error that Spark raises; None where it said nothing."""
    found = _LINE.search(str(error))
    return found[1].strip() if found else None
