"""LOAD DATA in statement format from a MariaDB, and from one family to the other."""

from pathlib import Path

import pymysql
import pytest

from tests.apply.statements.loading import SOURCE, TABLE, file, run
from tests.fix_families import families
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

STREAMED: dict[str, Value] = {
    "replica.pending_jobs_size_max": 1 << 18,
    "replica.batch_bytes": 1 << 16,
}


IN_THE_SUITE = {("11.8", "11.8", "streamed"), ("11.8", "9.7", "held"), ("9.7", "11.8", "streamed")}
CASES = [
    pytest.param(*case, marks=() if case in IN_THE_SUITE else pytest.mark.long)
    for case in (
        (source, target, way)
        for source, target in (
            ("11.8", "11.8"), ("11.8", "9.7"), ("9.7", "11.8"),
            ("10.11", "10.11"), ("10.11", "9.7"), ("9.7", "10.11"),
        )
        for way in ("held", "streamed")
    )
]  # fmt: skip


def event_names(server: Server) -> set[str]:
    shown: set[str] = set()
    for name, *_ in server.sql("SHOW BINARY LOGS"):
        shown |= {str(row[2]) for row in server.sql(f"SHOW BINLOG EVENTS IN '{name}'")}
    return shown


@pytest.mark.parametrize(("source", "target", "way"), CASES)
def test_files_of_every_size(source: str, target: str, way: str, tmp_path: Path) -> None:
    settings = STREAMED if way == "streamed" else {}
    with families(source, target, SOURCE) as pair:
        pair.target.sql("SET GLOBAL local_infile = ON")
        pair.source.sql(
            f"CREATE DATABASE d; CREATE TABLE d.t {TABLE}; CREATE TABLE d.m {TABLE} ENGINE=MyISAM"
        )
        many = "".join(f"{number}\trow {number}\t{number % 7}\n" for number in range(1, 60_001))
        large = file(pair.source, "large", many)
        few = file(pair.source, "few", "a\nb\n")
        again = file(pair.source, "again", "5\tagain\t1\n" * 60_000)
        run(
            pair.source,
            f"LOAD DATA INFILE '{large}' INTO TABLE t (id, v, u)",
            f"LOAD DATA INFILE '{large}' INTO TABLE m (id, v, u)",
            "SET @prefix = 'x', @n = 1.50",
            f"LOAD DATA INFILE '{few}' INTO TABLE t (@word) SET v = CONCAT(@prefix, @word), u = @n",
            f"LOAD DATA LOCAL INFILE '{few}' INTO TABLE t (v)",
            "BEGIN",
            f"LOAD DATA INFILE '{few}' INTO TABLE t (v)",
            "UPDATE t SET u = 9 WHERE id = 1",
            "COMMIT",
        )
        # It has changed nothing, and its file is in the log all the same.
        with pytest.raises(pymysql.err.IntegrityError):
            run(pair.source, f"LOAD DATA INFILE '{again}' INTO TABLE m (id, v, u)")
        run(pair.source, "UPDATE m SET u = 10 WHERE id = 2")
        assert {"Append_block", "Delete_file", "Execute_load_query"} <= event_names(pair.source)
        with DaemonProcess(pair.source, pair.target, tmp_path, settings) as daemon:
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
        for table in ("t", "m"):
            rows = f"SELECT * FROM d.{table} ORDER BY id"
            assert pair.source.sql(rows) == pair.target.sql(rows)
