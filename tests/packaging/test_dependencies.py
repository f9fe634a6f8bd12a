"""What mtsd imports is what pyproject.toml says that it needs."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from tests.packaging.locations import PROJECT

# `compression` is Python's own from 3.14 on.
LIBRARY = sys.stdlib_module_names | {"compression"}
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def distribution(requirement: str) -> str:
    """Return the name in a requirement, as pip compares names."""
    found = _NAME.match(requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_every_import_is_declared() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    needed = [*project["dependencies"], *(each for extra in extras for each in extra)]
    declared = {distribution(requirement) for requirement in needed}
    known = packages_distributions()
    missing = set()
    for path in (PROJECT / "mtsd").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for package in {name.partition(".")[0] for name in names} - LIBRARY:
                found = {distribution(each) for each in known.get(package, [package])}
                if found.isdisjoint(declared | {"mtsd"}):
                    missing.add(package)
    assert missing == set()


def test_only_constants_come_from_mysql_replication() -> None:
    imported = set()
    for path in (PROJECT / "mtsd").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pymysqlrepl"):
                imported |= {f"{node.module}.{each.name}" for each in node.names}
    assert imported == {
        "pymysqlreplication.constants.BINLOG",
        "pymysqlreplication.constants.FIELD_TYPE",
        "pymysqlreplication.json_binary",
    }
