"""A slice of the servers' own test suites: mtsd goes on wherever the server's own replica does."""

from pathlib import Path

import pytest

from tests.firehose.run import Firehose
from tests.firehose.suites import provide_suites

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(1800)]

SLICE = (
    "auto_increment", "insert_select", "rename", "replace", "sp_trans", "truncate", "type_binary",
    "user_var",
)  # fmt: skip


@pytest.mark.parametrize("binlog_format", ["ROW", "STATEMENT", "MIXED"])
def test_slice(binlog_format: str, tmp_path: Path) -> None:
    suites = provide_suites("mysql")
    results = list(Firehose(suites, tmp_path, binlog_format).run(suites.tests("main", SLICE)))
    assert len(results) == len(SLICE)
    assert [each for each in results if each.findings or each.left_out] == []
