"""The text of a statement, and its tokens, which `mtsd.binlog.sql.tokenizer` reads once."""

import enum
from dataclasses import dataclass
from typing import Final, final

from mtsd.model.session import SessionContext

ANY_CONTEXT: Final = SessionContext()


class TokenKind(enum.Enum):
    """What a token is; comments and white space are not tokens."""

    WORD = "word"
    QUOTED = "quoted"
    """A string, a quoted identifier, or a text in another language."""
    UNCLOSED = "unclosed"
    """A quote or comment without its end, and all that follows: no server executes that."""
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a statement: `text` is in upper case for a word; offsets are in bytes."""

    kind: TokenKind
    text: bytes
    start: int
    end: int


class VersionComments(enum.Enum):
    """Whose comments with a version have contents that are tokens (`mtsd.binlog.sql.tokenizer`)."""

    MYSQL = "MySQL's"
    MARIADB = "MariaDB's"
    ANY = "those of either"
    """For what must not be overlooked, whichever server it is for."""


@final
class Tokens:
    """The tokens of a text that have been read, in order, and where reading goes on.

    The next one begins at byte `at` or behind it, inside of so many version comments.
    """

    __slots__ = ("at", "complete", "inside", "read")

    def __init__(self, at: int = 0, inside: int = 0) -> None:
        self.read: list[Token] = []
        self.at = at
        self.inside = inside
        self.complete = False


@final
class StatementText:
    """A statement as a session reads it: its bytes, and the context of that session.

    Whoever reads its words takes the tokens that have been read, and reads on from there: one
    thread at a time.
    """

    __slots__ = ("comments", "context", "raw", "tokens")

    def __init__(
        self,
        raw: bytes,
        context: SessionContext = ANY_CONTEXT,
        comments: VersionComments = VersionComments.MYSQL,
        tokens: Tokens | None = None,
    ) -> None:
        self.raw = raw
        self.context = context
        self.comments = comments
        self.tokens = tokens

    def in_session(self, context: SessionContext) -> "StatementText":
        """Return it as another session reads it."""
        own = self.context
        same = (
            own.sql_mode == context.sql_mode
            and own.character_set_client == context.character_set_client
        )
        return StatementText(self.raw, context, self.comments, self.tokens if same else None)

    def with_raw(self, raw: bytes) -> "StatementText":
        """Return another text in the same session."""
        return self if raw is self.raw else StatementText(raw, self.context, self.comments)

    def let_go(self) -> None:
        """Forget the tokens, which take many times the memory of the text."""
        self.tokens = None

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same text in the same context; what has been read is apart."""
        return (
            isinstance(other, StatementText)
            and self.raw == other.raw
            and self.context == other.context
            and self.comments is other.comments
        )

    def __hash__(self) -> int:
        return hash((self.raw, self.context))

    def __repr__(self) -> str:
        return f"StatementText({self.raw!r}, {self.context!r})"
