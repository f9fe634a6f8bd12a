"""Partial updates of JSON documents: what PARTIAL_UPDATE_ROWS events hold instead of a document.

One diff after another: operation u8 (0 replace, 1 insert, 2 remove), path with its length, and
except for a removal the binary form of the new value with its length; lengths are length-encoded
integers (MySQL documentation, `Json_diff`).
"""

import enum
import json
import re
from json.encoder import encode_basestring
from typing import Final, NamedTuple, TypeAlias

from mtsd.binlog.bytes.cursor import Cursor
from mtsd.binlog.values.json_binary import LARGE_ARRAY, LARGE_OBJECT, JsonDocument, json_text
from mtsd.model.errors import BinlogError

_WHAT: Final = "JSON diff"
_LEG: Final = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([^.\[\]"]+))|\[(\d+)\]')

_Node: TypeAlias = "str | dict[str, _Node] | list[_Node]"
"""A scalar is its text."""
_Leg: TypeAlias = str | int


class JsonOperation(enum.IntEnum):
    """What a diff does at its path."""

    REPLACE = 0
    INSERT = 1
    """A member that the object does not have, or an element before the one that is there."""
    REMOVE = 2


class JsonDiff(NamedTuple):
    """One change at `path`, in MySQL's syntax; `value` is the new one in binary form."""

    operation: JsonOperation
    path: str
    value: bytes

    @property
    def text(self) -> str:
        """Return the new value's text; BinlogError where it is not of its form."""
        return json_text(self.value)


JsonDiffs: TypeAlias = tuple[JsonDiff, ...]
"""The changes of one document in their order; none: it stays as it is."""


def parse_json_diffs(raw: bytes) -> JsonDiffs:
    """Decode the diffs of a column; BinlogError where they are cut off or inconsistent."""
    cursor = Cursor(raw, 0, _WHAT)
    diffs = []
    while cursor.left():
        number = cursor.uint(1, "operation")
        if number > JsonOperation.REMOVE:
            raise BinlogError(f"{_WHAT}: operation {number} is not known")
        operation = JsonOperation(number)
        path = cursor.text(cursor.net_int("length of the path"), "path")
        value = b""
        if operation is not JsonOperation.REMOVE:
            value = cursor.take(cursor.net_int("length of the value"), "value")
            if not value:
                raise BinlogError(f"{_WHAT}: no value for {path[:80]!r}")
        diffs.append(JsonDiff(operation, path, value))
    return tuple(diffs)


def changed_json(before: bytes, diffs: JsonDiffs) -> str:
    """Return the text of a document after the diffs, given the binary form of it before.

    Raises BinlogError where the document does not have what a diff says it has.
    """
    root = _tree(before)
    for diff in diffs:
        legs = _legs(diff.path)
        value = _tree(diff.value) if diff.operation is not JsonOperation.REMOVE else ""
        if not legs:
            if diff.operation is not JsonOperation.REPLACE:
                raise _misfit(diff)
            root = value
            continue
        parent = root
        for leg in legs[:-1]:
            parent = _child(parent, leg, diff)
        _change(parent, legs[-1], value, diff)
    return _text(root)


def _tree(raw: bytes) -> _Node:
    return _node(JsonDocument(raw), raw[0], 1, 0) if raw else "null"


def _node(document: JsonDocument, kind: int, at: int, depth: int) -> _Node:
    if kind > LARGE_ARRAY:
        return document.scalar(kind, at)
    width = 4 if kind & 1 else 2
    count, keys, values = document.entries(kind, at, depth)
    elements = [document.element(values + n * (1 + width), at, width) for n in range(count)]
    nodes = [_node(document, kind, place, depth + 1) for kind, place in elements]
    if kind > LARGE_OBJECT:
        return nodes
    names = [document.key(keys + n * (2 + width), at, width) for n in range(count)]
    return {_key(name): node for name, node in zip(names, nodes, strict=True)}


def _key(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BinlogError(f"JSON: {raw[:80]!r} is not UTF-8") from error


def _child(node: _Node, leg: _Leg, diff: JsonDiff) -> _Node:
    if isinstance(node, dict) and isinstance(leg, str) and leg in node:
        return node[leg]
    if isinstance(node, list) and isinstance(leg, int) and leg < len(node):
        return node[leg]
    raise _misfit(diff)


def _change(parent: _Node, leg: _Leg, value: _Node, diff: JsonDiff) -> None:
    insert = diff.operation is JsonOperation.INSERT
    if isinstance(parent, dict) and isinstance(leg, str) and (leg in parent) is not insert:
        if diff.operation is JsonOperation.REMOVE:
            del parent[leg]
        else:
            parent[leg] = value
    elif isinstance(parent, list) and isinstance(leg, int) and (leg < len(parent) or insert):
        if insert:
            parent.insert(leg, value)
        elif diff.operation is JsonOperation.REMOVE:
            del parent[leg]
        else:
            parent[leg] = value
    else:
        raise _misfit(diff)


def _misfit(diff: JsonDiff) -> BinlogError:
    return BinlogError(
        f"{_WHAT}: {diff.operation.name.lower()} at {diff.path[:80]!r}: the document before it"
        " has no such place"
    )


def _text(node: _Node) -> str:
    if isinstance(node, dict):
        # As a server keeps the members: by the length of the key, then by its bytes.
        keys = sorted(node, key=lambda key: (len(key.encode()), key.encode()))
        return f"{{{', '.join(f'{encode_basestring(key)}: {_text(node[key])}' for key in keys)}}}"
    if isinstance(node, list):
        return f"[{', '.join(map(_text, node))}]"
    return node


def _legs(path: str) -> list[_Leg]:
    if path[:1] != "$":
        raise BinlogError(f"{_WHAT}: {path[:80]!r} is no path")
    at = 1
    legs: list[_Leg] = []
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise BinlogError(f"{_WHAT}: {path[:80]!r} is no path")
        quoted, plain, index = match.groups()
        if index is not None:
            legs.append(int(index))
        elif quoted is None:
            legs.append(plain)
        else:
            try:
                legs.append(str(json.loads(f'"{quoted}"', strict=False)))
            except ValueError as error:
                raise BinlogError(f"{_WHAT}: {path[:80]!r} is no path") from error
        at = match.end()
    return legs
