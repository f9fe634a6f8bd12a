"""Which tests are left out, by what they and the files that they include contain."""

from pathlib import Path

import pytest

from tests.firehose.left_out import reason


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SET GLOBAL read_only = 1;\nGRANT SHUTDOWN ON *.* TO u;", None),
        ("# include/restart_mysqld.inc would restart it", None),
        ("SHUTDOWN;", "restarts the server"),
        ("--source include/other.inc", "restarts the server"),
        ("source include/missing.inc;", None),
        ("--source include/have_debug.inc", "needs a debug build"),
        ("set @@global.gtid_mode = ON;", "changes what replication stands on"),
    ],
)
def test_reason(text: str, why: str | None, tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/other.inc").write_text("--source include/restart_mysqld.inc\n")
    test = tmp_path / "some.test"
    test.write_text(text)
    assert reason(test, tmp_path) == why
