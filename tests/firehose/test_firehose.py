"""A slice of the servers' own test suites: mtsd goes on wherever the server's own replica does."""

from pathlib import Path

import pytest

from tests.firehose.run import Firehose
from tests.firehose.suites import provide_suites

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(1800)]

SLICES = {
    "mysql": (
        "auto_increment", "insert_select", "rename", "replace", "sp_trans", "truncate",
        "type_binary", "user_var",
    ),
    "mariadb": (
        "delete_returning", "rename", "replace", "sp_trans", "truncate", "type_binary", "update",
        "user_var",
    ),
}  # fmt: skip


@pytest.mark.parametrize("binlog_format", ["ROW", "STATEMENT", "MIXED"])
@pytest.mark.parametrize("family", SLICES)
def test_slice(family: str, binlog_format: str, tmp_path: Path) -> None:
    suites = provide_suites(family)
    tests = suites.tests("main", SLICES[family])
    results = list(Firehose(suites, tmp_path, binlog_format).run(tests))
    assert len(results) == len(SLICES[family])
    assert [each for each in results if each.findings or each.left_out] == []
