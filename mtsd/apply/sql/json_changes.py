"""Changes of parts of JSON documents as SQL expressions."""

from typing import Final

from mtsd.apply.sql import literals
from mtsd.apply.sql.json_literal import json_literal
from mtsd.apply.sql.row_literals import json_as_text
from mtsd.binlog.values.json_diff import JsonDiff, JsonDiffs, JsonOperation

_FUNCTIONS: Final = {JsonOperation.REPLACE: b"JSON_REPLACE", JsonOperation.INSERT: b"JSON_INSERT"}


def changed_document(document: bytes, changes: JsonDiffs, *, as_text: bool) -> bytes:
    """Return the expression for a document, of that column, after these changes.

    `as_text`: the column holds documents as text. Raises BinlogError, NotSupportedError.
    """
    for change in changes:
        document = _changed(document, change, as_text=as_text)
    return document


def _changed(document: bytes, diff: JsonDiff, *, as_text: bool) -> bytes:
    path = literals.utf8(diff.path)
    if diff.operation is JsonOperation.REMOVE:
        return b"JSON_REMOVE(%b,%b)" % (document, path)
    # What JSON_COMPACT returns is JSON to a MariaDB, and not a string.
    value = b"JSON_COMPACT(%b)" % json_as_text(diff.value) if as_text else json_literal(diff.value)
    name = _FUNCTIONS[diff.operation]
    if diff.operation is JsonOperation.INSERT and diff.path.endswith("]"):
        name = b"JSON_ARRAY_INSERT"
    return b"%b(%b,%b,%b)" % (name, document, path, value)
