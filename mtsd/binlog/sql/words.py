"""A statement's words, names and symbols, one after another."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from mtsd.binlog.bytes.character_sets import SWE7, character_set, is_ascii, text_decoder
from mtsd.binlog.sql.tokenizer import MAX_KEPT, NAME_QUOTES, beyond, closing_quote, token_at
from mtsd.model.errors import MtsdError
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText, Token, TokenKind


class Words:
    """Reads a statement token by token, with a lookahead of one token."""

    __slots__ = ("_read", "_text", "last", "next")

    def __init__(self, text: StatementText) -> None:
        self._text = text
        self._read = 1
        """How many of the text's tokens have been asked for."""
        self.last: Token | None = None
        self.next = token_at(text, 0)

    def take(self) -> Token | None:
        """Advance by one token and return it; None at the end."""
        token = self.next
        if token is not None:
            if self._read == MAX_KEPT:
                self._text = beyond(self._text)
                self._read = 0
            self.last = token
            self.next = token_at(self._text, self._read)
            self._read += 1
        return token

    def word(self) -> bytes:
        """Consume and return the next token's text if it is a word, else return nothing."""
        if self.next is not None and self.next.kind is TokenKind.WORD:
            text = self.next.text
            self.take()
            return text
        return b""

    def take_words(self, *words: bytes) -> None:
        """Skip these words as far as they come next."""
        for word in words:
            if self.at_word(word):
                self.take()

    def at_word(self, word: bytes) -> bool:
        """Return whether that word comes next."""
        return self.next is not None and self.next.kind is TokenKind.WORD and self.next.text == word

    def at_symbol(self, symbols: bytes) -> bool:
        """Return whether one of these symbols comes next."""
        return (
            self.next is not None
            and self.next.kind is TokenKind.SYMBOL
            and self.next.text in symbols
        )

    def take_name(self) -> tuple[str, str]:
        """Consume an identifier; return its qualifier, "" if it has none, and the name itself."""
        if self.at_symbol(b"."):
            # In the default database.
            self.take()
        qualifier, name = "", self._identifier()
        while self.at_symbol(b"."):
            self.take()
            qualifier, name = name, self._identifier()
        return qualifier, name

    def _identifier(self) -> str:
        token = self.take()
        if token is None:
            return ""
        return identifier(self._text.raw[token.start : token.end], self._text.context)

    def text_of(self, start: int, end: int) -> str:
        """Return a part of the statement by its bytes."""
        return self._text.raw[start:end].decode("utf-8", "surrogateescape")

    def find(
        self, first: bytes, second: bytes, *, before: AbstractSet[bytes] = frozenset()
    ) -> tuple[int, int] | None:
        """Advance to two adjacent words; return where they begin and end.

        Anything in parentheses is ignored. None if they do not occur before the end, or before one
        of the words `before`.
        """
        for token in self.outer_words():
            if token.text == first and self.at_word(second) and self.next is not None:
                return token.start, self.next.end
            if token.text in before:
                break
        return None

    def outer_words(self) -> Iterator[Token]:
        """Advance to the end; yield the words that are in no parentheses opened from here on.

        Between two of them, what follows may be consumed.
        """
        depth = 0
        while token := self.take():
            if token.kind is TokenKind.SYMBOL:
                depth += (token.text == b"(") - (token.text == b")")
            elif token.kind is TokenKind.WORD and not depth:
                yield token

    def passes(self, words: AbstractSet[bytes], *, within: int | None = None) -> bool:
        """Advance to one of these words; return whether it occurs within `within` tokens."""
        while (within is None or within > 0) and (token := self.take()):
            if token.kind is TokenKind.WORD and token.text in words:
                return True
            within = None if within is None else within - 1
        return False

    def take_definer(self) -> None:
        """Skip `DEFINER = user`, if it comes next, or the last word of SQL SECURITY DEFINER."""
        if not self.at_word(b"DEFINER"):
            return
        self.take()
        if not self.at_symbol(b"="):
            return
        self.take()
        self.take()
        if self.at_symbol(b"@"):
            self.take()
            self.take_name()
        elif self.at_symbol(b"("):
            self.take()
            self.take()


def identifier(name: bytes, context: SessionContext) -> str:
    """Return the name that an identifier stands for, which may be in quotes.

    It is in the session's character_set_client. What is no text in that keeps its bytes.
    """
    raw = unquoted(name, context)
    try:
        return decoded(raw, context)
    except (MtsdError, UnicodeDecodeError):
        return raw.decode("utf-8", "surrogateescape")


def decoded(raw: bytes, context: SessionContext) -> str:
    """Return text of a statement; raises MtsdError, UnicodeDecodeError if it is none."""
    client = context.character_set_client
    if is_ascii(raw, client):
        return raw.decode()
    if client is None or character_set(client).startswith("utf8"):
        return raw.decode()
    return text_decoder(client)(raw)


def unquoted(name: bytes, context: SessionContext) -> bytes:
    """Return an identifier without its quotes, if it has any."""
    quote = name[:1]
    if quote not in NAME_QUOTES or len(name) == 1:
        return name
    if quote == b"[" and context.character_set_client in SWE7:
        # A letter.
        return name
    closing = closing_quote(quote)
    return name[1:-1].replace(closing * 2, closing)
