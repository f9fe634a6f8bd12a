"""docs/check.md has the table of all lines.

`python -m tests.operations.check.test_document` prints the table as it has to be.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from mtsd.operations.check.lines.catalogue import Kind

DOCUMENT = Path(__file__).parents[3] / "docs" / "check.md"


def rows() -> Iterator[str]:
    """Yield the rows of the table."""
    for kind in Kind:
        template = kind.value
        about, found, remedy = map(_written, (template.subject, template.found, template.remedy))
        yield f"| `{kind.id}` | {template.level} | {about} | {found} | {remedy} |"


def _written(template: str) -> str:
    template = template.replace("{config}", "")
    text = re.sub(r"\{(\w+)(?:!r)?\}", lambda field: f"*{field[1]}*", template)
    return text.replace("|", "\\|")


def test_the_table_is_that_of_the_code() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("| `")] == list(rows())


if __name__ == "__main__":
    print("\n".join(rows()))
