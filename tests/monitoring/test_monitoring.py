import re
from pathlib import Path

import pytest
import yaml

from mtsd.control.metrics import AGES, METRICS
from tests.monitoring.alerts import ALERTS
from tests.monitoring.dashboard import PANELS
from tests.monitoring.promtool import judged
from tests.monitoring.rule_cases import CASES, cases_document
from tests.monitoring.written import DOCS, written

NAMES = {metric.name for metric in METRICS} | {f"{AGES.name}_bucket"}


def test_the_files_are_as_the_list_has_them() -> None:
    wrong = [
        str(path) for path, text in written().items() if path.read_text(encoding="utf-8") != text
    ]
    assert not wrong, "write them: python -m tests.monitoring"


@pytest.mark.parametrize(
    "expression",
    [
        *(alert.expression for alert in ALERTS),
        *(expression for panel in PANELS for expression, _ in panel.queries),
    ],
)
def test_no_expression_is_about_a_metric_that_is_not_there(expression: str) -> None:
    assert set(re.findall(r"\bmtsd_\w+", expression)) <= NAMES


def test_prometheus_fires_each_alert_when_it_has_to(tmp_path: Path) -> None:
    assert {case.alert for case in CASES} == {alert.name for alert in ALERTS}
    cases = tmp_path / "cases.yml"
    cases.write_text(yaml.safe_dump(cases_document(DOCS / "alerts.yml")))
    done = judged(cases)
    assert done.returncode == 0, done.stdout + done.stderr
