"""Takes secrets out of texts that are given to somebody else.

What mtsd shows has none of them anyway. This is for what it passes on: a log, the variables of
servers, the rows of tables; and in case that one of them is wrong.

>>> Redaction(["s3cret!"]).text("mysql://me:other@db1/ said s3cret!")
'mysql://(hidden)@db1/ said (hidden)'
"""

import json
import re
from collections.abc import Iterable
from typing import Final

HIDDEN: Final = "(hidden)"
_SHORTEST: Final = 3
"""A secret that is shorter is in every text by chance."""
_IN_URL: Final = re.compile(r"://[^/\s:@\"']*:[^\s@\"']*@")
_NAMED: Final = re.compile(
    r"((?:passw(?:or)?d|passphrase|pwd|secret|token)[\"']?\s*[=:]\s*)"
    r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;{}\[\]()]+)",
    re.IGNORECASE,
)
_IDENTIFIED: Final = re.compile(
    r"(IDENTIFIED\s+(?:WITH\s+\S+\s+|VIA\s+\S+\s+)?(?:BY|AS|USING)\s+(?:PASSWORD\s*\(?\s*)?)"
    r"(?:'[^'\n]*'|\"[^\"\n]*\"|\S+)",
    re.IGNORECASE,
)
_VARIABLE: Final = re.compile(
    r"(?:password|passphrase|passwd|pwd|sst_auth|secret|token)$", re.IGNORECASE
)


class Redaction:
    """Knows the secrets of one configuration."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if len(secret) >= _SHORTEST}
        forms = {form for secret in known for form in _forms(secret)}
        # A longer one may contain a shorter one.
        self._forms = sorted(forms, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return a text without the secrets, the passwords in URLs, and what is named as one."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        text = _IN_URL.sub(f"://{HIDDEN}@", text)
        text = _IDENTIFIED.sub(rf"\g<1>'{HIDDEN}'", text)
        return _NAMED.sub(_hide, text)

    def value(self, value: object) -> object:
        """Return a value of JSON's types with all its texts redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.text(str(name)): self.value(each) for name, each in value.items()}
        return value

    def variables(self, variables: dict[str, str]) -> dict[str, str]:
        """Return a server's variables, those without value that are passwords by their name."""
        return {
            name: HIDDEN if value and _VARIABLE.search(name) else self.text(value)
            for name, value in variables.items()
        }


def _forms(secret: str) -> set[str]:
    """Return how a secret may be written: as it is, in JSON, in Python, in an SQL literal."""
    return {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        secret.replace("'", "''"),
    }


def _hide(match: re.Match[str]) -> str:
    quote = match[2][0] if match[2][0] in "\"'" else ""
    empty = len(match[2]) == len(quote) * 2
    return match[0] if empty else f"{match[1]}{quote}{HIDDEN}{quote}"
