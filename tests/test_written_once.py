"""What is to be written in one place is not written elsewhere, either."""

import ast
from functools import cache
from pathlib import Path

import mtsd
from mtsd.model.error_numbers import ER

PACKAGE = Path(mtsd.__file__).parent
MOST_COMPARING = 10
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
    assert len(found) <= MOST_COMPARING, found


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
