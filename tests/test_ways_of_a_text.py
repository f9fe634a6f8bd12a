"""Where a text of the source reaches a session: in two places, which keep it one statement."""

import ast
from collections.abc import Iterator
from pathlib import Path

import mtsd

ROOT = Path(mtsd.__file__).parent
BY_ITSELF = "apply/statements/source_statements.py"
WITH_OTHERS = "apply/statements/plain_statements.py"
SENDS = frozenset({"send", "run", "run_counted", "query", "query_named", "command"})


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield each call of a method in the package, with its file and the method's name."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield path.relative_to(ROOT).as_posix(), node.func.attr, node


def test_one_function_runs_a_text_by_itself() -> None:
    found = {
        file
        for file, method, call in calls()
        if method in {"ask", "load"} and "connection" in ast.unparse(call.func)
    }
    assert found == {BY_ITSELF}


def test_nothing_else_is_sent_with_the_text_of_a_statement() -> None:
    for file, method, call in calls():
        if method in SENDS and "connection" in ast.unparse(call.func):
            texts = [ast.unparse(argument) for argument in call.args]
            assert not any("query.statement" in text for text in texts), (file, texts)
    # Who reads the text of a statement to put it into a packet asks whether it is one.
    source = (ROOT / WITH_OTHERS).read_text("utf-8")
    assert source.count("sql.append(text)") == source.count("if not surely_one(text,") == 1


def test_no_name_is_quoted_by_hand() -> None:
    """Except in what is displayed, and the names of mtsd's own tables, in plain characters."""
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("binlog", "apply", "replica")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if 'replace("`", "``")' in (text := path.read_text("utf-8")) or 'b"`", b"``"' in text
    }
    assert found == {"binlog/sql/quoting.py", "apply/sql/literals.py"}
