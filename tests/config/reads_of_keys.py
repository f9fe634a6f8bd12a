"""Which keys of the configuration the code reads: found in its source, by the types it declares."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mtsd.config.settings import SECTIONS, Settings
from mtsd.config.settings import EndpointSettings as Endpoint

Types = Mapping[str, type]
"""Settings and sections, by the name that has one."""

_BY_NAME: Types = {kind.__name__: kind for kind in (*SECTIONS.values(), Endpoint, Settings)}


def keys_read(folders: Iterable[Path]) -> frozenset[str]:
    """Return the keys, such as `source.host`, that the modules in or at these paths read.

    What is read of an endpoint counts for source and target. A name counts where it is a parameter
    of a type of `mtsd.config`, or got its value from one; so does `self.name` where it did in its
    class, or is a property of such a type.
    """
    return frozenset(
        f"{section}.{name}"
        for folder in folders
        for path in ([folder] if folder.is_file() else folder.rglob("*.py"))
        for kind, name in _reads_of_module(ast.parse(path.read_text()))
        for section, own in SECTIONS.items()
        if issubclass(own, kind)
    )


def _reads_of_module(module: ast.Module) -> Iterator[tuple[type, str]]:
    """Yield each section that is read of with the attribute's name."""
    for scope in module.body:
        known = dict(_attributes_of(scope)) if isinstance(scope, ast.ClassDef) else {}
        for function in ast.walk(scope):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                names = known | _names_of(function, known)
                for node in ast.walk(function):
                    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                        kind = _type_of(node.value, names)
                        if kind not in {None, Settings}:
                            assert kind is not None
                            yield kind, node.attr


def _attributes_of(scope: ast.ClassDef) -> Iterator[tuple[str, type]]:
    for method in scope.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            names = _names_of(method, {})
            if method.returns is not None and ast.unparse(method.returns) in _BY_NAME:
                yield f"self.{method.name}", _BY_NAME[ast.unparse(method.returns)]
            for node in ast.walk(method):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                    kind = _type_of(node.value, names)
                    if kind is not None:
                        yield ast.unparse(node.targets[0]), kind


def _names_of(function: ast.FunctionDef | ast.AsyncFunctionDef, known: Types) -> dict[str, type]:
    arguments = function.args
    names = {
        each.arg: _BY_NAME[ast.unparse(each.annotation)]
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if each.annotation is not None and ast.unparse(each.annotation) in _BY_NAME
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            kind = _type_of(node.value, {**known, **names})
            if kind is not None:
                names[node.targets[0].id] = kind
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            names |= _names_of_loop(node, {**known, **names})
    return names


def _names_of_loop(loop: ast.For, names: Types) -> dict[str, type]:
    """Return the names of `for role, endpoint in (("source", settings.source), …)`."""
    found: dict[str, type] = {}
    assert isinstance(loop.iter, ast.Tuple)
    for row in loop.iter.elts:
        if isinstance(row, ast.Tuple) and isinstance(loop.target, ast.Tuple):
            for target, value in zip(loop.target.elts, row.elts, strict=True):
                if _type_of(value, names) is not None:
                    found[ast.unparse(target)] = Endpoint
    return found


def _type_of(node: ast.expr, names: Types) -> type | None:
    text = ast.unparse(node)
    if text in names:
        return names[text]
    if isinstance(node, ast.Attribute):
        if _type_of(node.value, names) is Settings:
            return SECTIONS.get(node.attr)
        if node.attr == "settings" and ast.unparse(node.value) in {"loaded", "change"}:
            return Settings
    return None
