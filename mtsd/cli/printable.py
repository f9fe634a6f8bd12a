"""Text from the source as a terminal may get it."""


def printable(text: str) -> str:
    """Return the text on one line, all that does not print as its escape.

    Names may hold line ends, sequences that move a terminal's cursor, and bytes that are no UTF-8.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
