"""A slice of the servers' own test suites: mtsd goes on wherever the server's own replica does."""

from pathlib import Path

import pytest

from tests.firehose.run import Firehose
from tests.firehose.suites import provide_suites

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(1800)]

SLICE = {
    "mysql": ("alter_table", "multi_update", "insert", "view", "trigger", "type_json_innodb"),
    "mariadb": ("alter_table", "multi_update", "insert", "view", "trigger", "temp_table"),
}


@pytest.mark.parametrize("binlog_format", ["ROW", "STATEMENT", "MIXED"])
@pytest.mark.parametrize("family", SLICE)
def test_slice(family: str, binlog_format: str, tmp_path: Path) -> None:
    suites = provide_suites(family)
    results = list(
        Firehose(suites, tmp_path, binlog_format).run(suites.tests("main", SLICE[family]))
    )
    assert len(results) == len(SLICE[family])
    assert [each for each in results if each.findings or each.left_out] == []
