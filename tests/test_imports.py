"""A test module can be changed, split or removed without looking for others that import it."""

import ast
from pathlib import Path

TESTS = Path(__file__).parent


def test_no_module_imports_a_test_module() -> None:
    """What several of them need stands in a module beside them, or in tests/fix_*.py."""
    importing = [
        f"{path.relative_to(TESTS)} imports {imported}"
        for path in sorted(TESTS.rglob("*.py"))
        for imported in _imported_by(path)
        if any(part.startswith("test_") for part in imported.split("."))
    ]
    assert importing == []


def _imported_by(path: Path) -> set[str]:
    """Return the dotted names in the imports of a file, wherever in it they stand."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{each.name}" for each in node.names)
    return found
