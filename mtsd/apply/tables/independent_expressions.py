"""Expressions over the columns of a row that are the same in every state of the session.

Only what is known to be so: arithmetic without subtraction, comparisons, and some functions, over
columns that are neither a time nor padded text. Everything else may depend on something: a
difference on NO_UNSIGNED_SUBTRACTION, a CHAR on PAD_CHAR_TO_FULL_LENGTH, a TIMESTAMP on time_zone,
a date in a text on NO_ZERO_DATE, LIKE on NO_BACKSLASH_ESCAPES.
"""

import re
from collections.abc import Mapping
from typing import Final

_TOKEN: Final = re.compile(
    r"\s*(?:`(?P<column>(?:[^`]|``)+)`"
    # MySQL shows its quotes with a backslash.
    r"|(?:_\w+)?\\?'(?P<text>[^'\\]*)\\?'"
    r"|(?P<number>\d+(?:\.\d*)?)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>[-=<>+*/%(),!]))"
)
_SIGNS: Final = frozenset("=<>+*/%(),!")
_WORDS: Final = frozenset({
    "abs", "and", "between", "case", "char_length", "coalesce", "concat", "else", "end", "false",
    "if", "ifnull", "in", "is", "json_extract", "json_length", "json_unquote", "json_valid",
    "length", "lower", "md5", "not", "null", "or", "sha1", "sha2", "then", "true", "upper", "when",
})  # fmt: skip
_TYPES: Final = frozenset({
    "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit",
    "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "varbinary", "tinyblob",
    "blob", "mediumblob", "longblob",
})  # fmt: skip


def is_independent(expression: str, types: Mapping[str, str]) -> bool:
    """Return whether an expression, as a server shows it, does not depend on the session.

    `types` are those of the columns by name, as in information_schema.columns.data_type.
    """
    at, end = 0, len(expression.rstrip())
    while at < end:
        match = _TOKEN.match(expression, at)
        if match is None or not _is_known(match, types):
            return False
        at = match.end()
    return True


def _is_known(token: re.Match[str], types: Mapping[str, str]) -> bool:
    match token.lastgroup:
        case "column":
            return types.get(token["column"].replace("``", "`"), "").lower() in _TYPES
        case "word":
            return token["word"].lower() in _WORDS
        case "sign":
            return token["sign"] in _SIGNS
        case _:
            return True
