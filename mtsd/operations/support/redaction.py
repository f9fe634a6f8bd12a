"""Takes secrets out of texts that are given to somebody else.

What mtsd shows has none of them anyway. This is for what it passes on: a log, the variables of
servers, the rows of tables; and in case that one of them is wrong.

>>> Redaction(["s3cret!"]).text("mysql://me:other@db1/ said s3cret!")
'mysql://(hidden)@db1/ said (hidden)'
"""

import base64
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

HIDDEN: Final = "(hidden)"
_SHORTEST: Final = 3
"""A secret that is shorter is in every text by chance."""
_SHORTEST_CODED: Final = 6


_LITERAL: Final = (
    r"(?:_\w+|[NX])?(?P<esc>\\*)(?P<quote>['\"])"
    r"(?:(?:(?P=esc)(?P=quote)){2}|(?!(?<!\\)(?P=esc)(?P=quote))(?s:.)){0,4000}"
    r"(?:(?P=esc)(?P=quote)|[^\n]*)"
)
r"""It ends as it began: 'it''s', "a \"b\"", and \"a\" within JSON; else with its line."""


def _after(before: str, bare: str = "", flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    """Return a pattern of what comes before a secret, the first group, and of that.

    It is a literal, or also `bare` if that is given.
    """
    return re.compile(f"({before})(?:{_LITERAL}{f'|{bare}' if bare else ''})", flags)


_BARE: Final = r"(?![\[{])(?:[^\s\"\\]|\\(?![\"nrt]))+"
_NAMES: Final = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|sst_auth"
    r"|(?:api|access|private|encryption)[_-]?key)(?:_access_key|_key|_hash)?"
)
_GAP: Final = r"(?:\s|/\*[^*]{0,200}\*/|\\+[nrt]){1,200}"
_OF_ACCOUNT: Final = r"(?:PASSWORD\s*\(?\s*)?"
_SHOWN: Final = (
    (re.compile(r"((?:\\*/){2})[^\s/\"':@]{0,200}:[^\s\"']{0,200}@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(:(?:\\*/){2})[^\s/\"':@]{1,200}@"), rf"\1{HIDDEN}@"),
    (
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----"
            r"(?:[\w+/=\s\\:,-]*?-----END [A-Z0-9 ]*PRIVATE KEY-----|[\w+/=\s\\:,-]*)"
        ),
        HIDDEN,
    ),
)
"""Those that are a secret by what they are."""
_TOLD: Final = (
    _after(
        rf"IDENTIFIED{_GAP}(?:(?:WITH|VIA){_GAP}\S+{_GAP})?(?:BY|AS|USING){_GAP}{_OF_ACCOUNT}",
        r"[^\s'\"\\]+",
    ),
    _after(rf"\bOR{_GAP}\w+{_GAP}(?:BY|AS|USING){_GAP}{_OF_ACCOUNT}"),
    _after(rf"\bREPLACE{_GAP}"),
    _after(rf"SET{_GAP}PASSWORD\s+FOR\s+[^=\n]{{1,300}}?\s*:?=\s*(?:\w*PASSWORD\s*\(\s*)?"),
    _after(r"PASSWORD(?:\s*\(\s*|\s+)"),
    _after(r"PASSWORD\s*=\s*\w*PASSWORD\s*\(\s*"),
    _after(r"--[\w-]*pass(?:word|wd)?\s+", r"(?!-)[^\s\"'\\]+"),
    _after(
        r"\b(?:mysql|mariadb|mariabackup|xtrabackup|mydumper)\w*[^\n\"]{0,200}?\s-p",
        r"[^\s\"'\\]+",
        flags=re.NOFLAG,
    ),
    _after(r"Authorization[\"']?\s*[=:]\s*[\"']?(?:Bearer|Basic)\s+", _BARE),
)
"""Those that a statement or a command says to be one."""
_NAMED: Final = _after(rf"{_NAMES}\\*[\"']?\s*(?::=|=>|[=:])\s*", _BARE)
_NAME: Final = re.compile(rf"{_NAMES}$", re.IGNORECASE)


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
        for pattern, shown in _SHOWN:
            text = pattern.sub(shown, text)
        for pattern in (*_TOLD, _NAMED):
            text = pattern.sub(_hide, text)
        return text

    def document(self, text: str) -> str:
        """Return a text redacted, of which all, or each line, may be JSON: its texts by themselves.

        A quote within one of them would end it too early otherwise.
        """
        whole = _of_json(text)
        if whole is not None:
            return json.dumps(self.value(whole), indent=2, ensure_ascii=False) + "\n"
        lines = (self._line(line) for line in text.splitlines(keepends=True))
        return self.text("".join(lines))

    def _line(self, line: str) -> str:
        record = _of_json(line) if line.startswith("{") else None
        if record is None:
            return line
        end = "\n" if line.endswith("\n") else ""
        return json.dumps(self.value(record), ensure_ascii=False) + end

    def value(self, value: object) -> object:
        """Return a value of JSON's types with all its texts redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.text(str(name)): self._of(str(name), each) for name, each in value.items()}
        return value

    def _of(self, name: str, value: object) -> object:
        if _NAME.search(name) and isinstance(value, str | int | float) and value not in {"", None}:
            return HIDDEN
        return self.value(value)

    def variables(self, variables: dict[str, str]) -> dict[str, str]:
        """Return a server's variables, those without value that are passwords by their name."""
        return {
            name: HIDDEN if value and _NAME.search(name) else self.text(value)
            for name, value in variables.items()
        }


def secrets_in(environment: Iterable[tuple[str, str]]) -> list[str]:
    """Return the values that are secrets by the names of their variables."""
    return [value for name, value in environment if _NAME.search(name)]


def _of_json(text: str) -> dict[str, object] | list[object] | None:
    """Return an object or a list of JSON; None if it is something else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _forms(secret: str) -> set[str]:
    """Return how a secret may be written: as it is, quoted in some way, or coded."""
    raw = secret.encode("utf-8", "surrogatepass")
    as_json = {json.dumps(secret, ensure_ascii=ascii_)[1:-1] for ascii_ in (True, False)}
    in_urls = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    written = {
        secret,
        *as_json,
        *(json.dumps(each)[1:-1] for each in as_json),
        repr(secret)[1:-1],
        repr(raw)[2:-1],
        secret.replace("'", "''"),
        secret.replace("\\", "\\\\").replace("'", "\\'"),
        *in_urls,
        *(re.sub("%..", lambda code: code[0].lower(), each) for each in in_urls),
    }
    coded = {raw.hex(), raw.hex().upper(), *_in_base64(raw)}
    return written | {each for each in coded if len(each) >= _SHORTEST_CODED}


def _in_base64(raw: bytes) -> Iterable[str]:
    """Yield what is always the same of a secret in base64, whatever is before and behind it.

    It may be behind a user and a colon, as in an Authorization header.
    """
    for before, first in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        cut = text[first:] if (before + len(raw)) % 3 == 0 else text[first:-1]
        yield from (text[first:], cut, cut.replace("+", "-").replace("/", "_"))


def _hide(match: re.Match[str]) -> str:
    """Return the match with its secret hidden, in the quotes that it has."""
    secret = match[0][len(match[1]) :]
    mark = f"{match['esc']}{match['quote']}" if match.re.groupindex and match["quote"] else ""
    is_empty = mark and secret.endswith(mark * 2) and len(secret) <= len(mark * 2) + len("_utf8mb4")
    if is_empty or secret.strip("\\'\"") == HIDDEN:
        return match[0]
    return f"{match[1]}{mark}{HIDDEN}{mark}"
