"""What a person sees of a read that failed: the one line that says it, out of what Spark adds."""

import re
from typing import Final

from mtsd.model.errors import NeedsPersonError


class UnreadableBinlogError(NeedsPersonError):
    """A binary log cannot be read; the message names the file and the position."""


_MARK: Final = f"{UnreadableBinlogError.__module__}.{UnreadableBinlogError.__qualname__}: "
_LINE: Final = re.compile(re.escape(_MARK) + r"(.+)")


def failure_line(error: BaseException) -> str | None:
    """Return what mtsd said in an executor, out of an error that Spark raises; None if nothing."""
    found = _LINE.search(str(error))
    return found[1].strip() if found else None
