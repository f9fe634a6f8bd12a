"""Text from the source made safe for a terminal."""


def printable(text: str) -> str:
    """Return the text on one line, with everything that is not printable escaped.

    Names may contain line ends, sequences that move a terminal's cursor, and invalid UTF-8.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
