"""Files that a person names: read up to a bound; and what looks wrong about one of a secret."""

import errno
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mtsd.config.problems import Problem

MAX_BYTES: Final = 1 << 20
"""Much more than settings or a password need."""


def text_of(path: Path) -> str:
    """Return what a text file holds. Raises OSError, UnicodeDecodeError.

    OSError, also if it is longer than `MAX_BYTES`: a device such as /dev/zero has no end, and read
    to that it takes all memory. A mark of UTF-8, with which some editors begin, is no part of it.
    """
    with path.open("rb") as file:
        held = file.read(MAX_BYTES + 1)
    if len(held) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MAX_BYTES >> 20} MiB")
    return held.decode("utf-8-sig")


def secret_of(path: Path) -> str:
    """Return what a file of one secret holds. Raises OSError, UnicodeDecodeError.

    One end of line, of Windows too, is no part of it: the server would only say that the password
    is wrong.
    """
    return re.sub(r"\r?\n\Z", "", text_of(path))


def doubts(path: Path, secret: str) -> Iterator[str]:
    """Yield a warning where the `secret` of a file is hardly what was meant.

    A login without a password may succeed, and one with two lines only fails as a wrong password.
    """
    if not secret:
        yield f"{path} is empty: the login is without a password"
    elif len(secret.splitlines()) > 1 or secret.endswith(("\n", "\r")):
        yield f"{path} has several lines, and all of them are the password: keep only one"


def unreadable(path: Path, error: OSError | UnicodeDecodeError, origin: str) -> Problem:
    """Report why a file cannot be read, without revealing anything of its contents."""
    reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or "error"
    return Problem(
        str(path), f"cannot be read: {reason}", "allowed is a readable UTF-8 text file", origin
    )
