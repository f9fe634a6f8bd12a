"""Reading statements of many megabytes, in a thread, without holding up the others.

Only the interpreter looks whether another thread waits for its turn: when it enters a function or
repeats a loop. Code that mypyc has compiled never does by itself, nor does a search of a regular
expression. So this module is not compiled, and looks at a long text piece by piece.
"""

LONGEST_READ = 65_536
"""Bytes. A longer statement is not read to its end on the event loop, in which all else waits."""
_PIECE = 1 << 20


def let_others_run() -> None:
    """Let another thread run if one waits; to be called now and then in a long loop."""


def contains(text: bytes, part: bytes) -> bool:
    """Return whether `part` is anywhere in a text."""
    if len(text) <= _PIECE:
        return part in text
    return any(text.find(part, at, end) >= 0 for at, end in _pieces(text, part))


def contains_letters(text: bytes, part: bytes) -> bool:
    """Return whether `part`, in lower case, is anywhere in a text, in upper or lower case."""
    if len(text) <= _PIECE:
        return part in text.lower()
    return any(part in text[at:end].lower() for at, end in _pieces(text, part))


def _pieces(text: bytes, part: bytes) -> list[tuple[int, int]]:
    return [(at, at + _PIECE + len(part) - 1) for at in range(0, len(text), _PIECE)]
