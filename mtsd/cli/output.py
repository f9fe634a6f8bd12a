"""The only place where commands write: whatever they show of a server is made printable.

A name may contain sequences that move a terminal's cursor, rename its window or answer for the
person at it, characters that turn the direction of writing, and parts of characters. Nothing that a
server, a file or a daemon says reaches a terminal otherwise than as text.
"""

import json
import sys
from collections.abc import Callable
from typing import TextIO


class OutputError(OSError):
    """What a command prints cannot be written: the disk is full, or a terminal is broken.

    A reader that is gone (`| head`) is none: that is a BrokenPipeError.
    """


def not_written(error: OSError) -> OSError:
    """Return what to raise where standard output could not be written: an OutputError, mostly."""
    if isinstance(error, BrokenPipeError):
        return error
    return OutputError(error.errno, error.strerror)


def printable(text: str) -> str:
    """Return the text on one line, with everything that is not printable escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def json_of(value: object, *, indent: int | None = None) -> str:
    """Return JSON in which everything that is not printable is escaped."""
    return printable_json(json.dumps(value, indent=indent, ensure_ascii=False))


def printable_json(text: str) -> str:
    """Return JSON text with everything that is not printable escaped, but for its line ends."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else _escaped_in_json(char) for char in text
    )


def print_line(text: str = "") -> None:
    """Write a line to standard output."""
    _write(sys.stdout, printable(text), _escaped)


def print_json(text: str) -> None:
    """Write JSON text to standard output."""
    _write(sys.stdout, printable_json(text), _escaped_in_json)


def report(text: str) -> None:
    """Write a line for the person at the terminal, to standard error."""
    _write(sys.stderr, f"mtsd: {printable(text)}", _escaped, flush=True)


def report_over(text: str) -> None:
    """Write it to a terminal in place of what is on the line, which is not ended."""
    _write(sys.stderr, f"\rmtsd: {printable(text)}\x1b[K", _escaped, end="", flush=True)


def end_line() -> None:
    """End the line that `report_over` has left."""
    _write(sys.stderr, "", _escaped, flush=True)


def flush() -> None:
    """Write what is held back to standard output. Raises OutputError."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        raise not_written(error) from None


def _write(
    out: TextIO, text: str, escaped: Callable[[str], str], *, end: str = "\n", flush: bool = False
) -> None:
    try:
        print(text, end=end, file=out, flush=flush)
    except UnicodeEncodeError:
        # A terminal that does not know all characters. Nothing has been written.
        plain = "".join(char if char.isascii() else escaped(char) for char in text)
        print(plain, end=end, file=out, flush=flush)
    except OSError as error:
        raise not_written(error) from None


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escaped_in_json(char: str) -> str:
    return json.dumps(char)[1:-1]
