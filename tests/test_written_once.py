"""What a newcomer counts on: a thing is in one place, and no place is too large to be read."""

import ast
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import mtsd
from mtsd.model.error_numbers import ER

PACKAGE = Path(mtsd.__file__).parent
ROOT = PACKAGE.parent
MAX_COMPARING = 10
MAX_NAMING = 10
MAX_FILES = 22
"""Modules of a folder, beside its __init__.py."""
MAX_LINES = 400
TABLES_OF_DATA = {"operations/check/lines/catalogue.py"}
"""They may be as long as their table."""
TOO_LONG: dict[str, int] = {}
"""Lines of modules that are still to be divided. They only get fewer."""
TOO_FULL: dict[str, int] = {}
"""Modules of folders that are still to be divided."""
NUMBERS = frozenset(map(int, ER))
NO_ERRORS = {(path, int(each)) for path in ("model/error_numbers.py",) for each in ER} | {
    ("binlog/events/mariadb_compressed.py", 1032)
}
"""Where such a number is something else, or is defined."""


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Return the modules, by their paths in the package."""
    return tuple(
        (str(path.relative_to(PACKAGE)), ast.parse(path.read_bytes()))
        for path in sorted(PACKAGE.rglob("*.py"))
    )


def named(node: ast.AST) -> str:
    """Return the last name in an expression; "" if it does not end with one."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def compares_families(module: ast.Module) -> bool:
    """Return whether it compares a server's family, by an identity or by the family's name."""
    operands = {
        operand.value if isinstance(operand, ast.Constant) else named(operand).strip("_")
        for node in ast.walk(module)
        if isinstance(node, ast.Compare)
        for operand in (node.left, *node.comparators)
    }
    return bool(operands & {"MYSQL", "MARIADB", "flavour", "MySQL", "MariaDB"})


def test_few_modules_compare_families() -> None:
    """What differs between families is data (SERVERS, SOURCES, TARGETS, `Dialect`)."""
    found = [path for path, module in modules() if compares_families(module)]
    assert len(found) <= MAX_COMPARING, found


def test_errors_have_names() -> None:
    """A number of a server's error is in `ER` only."""
    found = [
        (path, node.lineno, node.value)
        for path, module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and type(node.value) is int
        if node.value in NUMBERS and (path, node.value) not in NO_ERRORS
    ]
    assert not found


def test_errors_are_named_in_one_module() -> None:
    """The constants of a library are no second home."""
    found = [
        path
        for path, module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module == "pymysql.constants"
        if any(each.name in {"ER", "CR"} for each in node.names)
    ]
    assert not found


def test_few_modules_name_a_family() -> None:
    """Elsewhere a family is only passed on, or asked for its data."""
    found = [
        path
        for path, module in modules()
        if any(
            isinstance(node, ast.Attribute) and named(node.value) == "Flavour"
            for node in ast.walk(module)
        )
    ]
    assert len(found) <= MAX_NAMING, found


def test_modules_can_be_read_through() -> None:
    """What is longer does more than one thing, and is divided by what its parts do."""
    lines = {
        str(path.relative_to(PACKAGE)): path.read_bytes().count(b"\n")
        for path in PACKAGE.rglob("*.py")
    }
    limits = dict.fromkeys(TABLES_OF_DATA, 1 << 30) | TOO_LONG
    long = {path: each for path, each in lines.items() if each > limits.get(path, MAX_LINES)}
    assert not long, "divide these, by what their parts do"
    done = {path for path in TOO_LONG if lines.get(path, 0) <= MAX_LINES}
    assert not done, "these are divided: remove them from TOO_LONG"


def test_folders_can_be_read_through() -> None:
    """One screen shows what a folder holds."""
    files = Counter(
        str(path.parent.relative_to(ROOT))
        for top in ("mtsd", "tests", "benchmarks", "scripts")
        for path in (ROOT / top).rglob("*.py")
        if path.name != "__init__.py"
    )
    full = {path: count for path, count in files.items() if count > TOO_FULL.get(path, MAX_FILES)}
    assert not full, "divide these, by what their modules are for"
    done = {path for path in TOO_FULL if files[path] <= MAX_FILES}
    assert not done, "these are divided: remove them from TOO_FULL"


def test_a_class_name_stands_for_one_thing() -> None:
    """Who searches for a name finds the one class, not its namesake."""
    places = defaultdict(list)
    for path, module in modules():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert not {name: paths for name, paths in places.items() if len(paths) > 1}
