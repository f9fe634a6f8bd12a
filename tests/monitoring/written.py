"""The files in docs/ that are made from the list of metrics: `python -m tests.monitoring`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from mtsd.control.metrics import METRICS
from tests.monitoring.alerts import ALERTS, alerts_document
from tests.monitoring.dashboard import dashboard_document

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = DOCS / "monitoring.md"
_HEAD: Final = "# Written by `python -m tests.monitoring`: change the rules there.\n"


def written() -> Mapping[Path, str]:
    """Return what the files have to contain."""
    page = PAGE.read_text(encoding="utf-8")
    page = _between("metrics", _metrics(), page)
    page = _between("alerts", _alerts(), page)
    rules = yaml.safe_dump(alerts_document(), sort_keys=False, width=1000, allow_unicode=True)
    return {
        PAGE: page,
        DOCS / "alerts.yml": _HEAD + rules,
        DOCS / "dashboard.json": json.dumps(dashboard_document(), indent=1) + "\n",
    }


def _between(name: str, text: str, page: str) -> str:
    """Return the page with the text between its marks of that name."""
    marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    assert len(marks.findall(page)) == 1
    return marks.sub(lambda found: f"{found[1]}{text}{found[2]}", page)


def _metrics() -> str:
    lines = ["| metric | kind | labels beside `channel` | what it says |", "|---|---|---|---|"]
    lines += [
        f"| `{each.name}` | {each.kind} | {', '.join(f'`{label}`' for label in each.labels)} |"
        f" {each.help} |"
        for each in METRICS
    ]
    return "\n".join(lines) + "\n"


def _alerts() -> str:
    lines = ["| alert | when | for | what to do first |", "|---|---|---|---|"]
    lines += [
        f"| `{each.name}` ({each.severity}) | {each.summary} | {each.lasts} | {each.action} |"
        for each in ALERTS
    ]
    return "\n".join(lines) + "\n"
