"""The rows that `latest` makes of a stream's changes are the source's, whatever was killed."""

import json
import os
import random
import time
from base64 import b64encode
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest
from pymysql.cursors import DictCursor
from pyspark.sql import DataFrame, SparkSession

from mtsd.spark import latest
from tests.binlog.recording import OPTIONS
from tests.fix_families import installed
from tests.servers.mysqld import Server
from tests.servers.provision import Options
from tests.spark.evolving_load import TABLES, evolving_load
from tests.spark.query_kills import (
    kill,
    kill_a_worker,
    newest,
    running,
    wait_between_commits,
    wait_for_batches,
)
from tests.spark.streams import Stream

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(2400)]

KILLS: Final = int(os.environ.get("SPARK_KILLS", "20"))
"""Kills of the driver; before every second of them, an executor's process is killed."""
SERVERS: Final[dict[str, Options]] = {
    "9.7": OPTIONS,
    "11.8": {"binlog_format": "ROW", "binlog_row_metadata": "FULL", "log_bin_compress": "ON"},
}

Rows = dict[tuple[str, int], dict[str, object]]
"""By table and primary key."""


@pytest.mark.parametrize("series", SERVERS)
@pytest.mark.parametrize("where", ["folder", "live"])
def test_it_is_the_sources(spark: SparkSession, series: str, where: str, tmp_path: Path) -> None:
    rng = random.Random(KILLS)
    settings = {**SERVERS[series], "max_binlog_size": 262_144}
    with Server(settings, installation=installed(series)) as server:
        options = {
            "folder": {"path": str(server.datadir)},
            "live": {
                "host": "127.0.0.1", "port": str(server.port), "user": "root",
                "server_ids": "4401-4404",
            },
        }[where]  # fmt: skip
        options |= {"shape": "changes", "schemas": "k", "max_bytes": "2m"}
        stream = Stream(spark, "", tmp_path, {**options, "max_partition_bytes": "200k"})
        workers = 0
        with evolving_load(server, lambda: first_needed(stream)) as load:
            for number in range(KILLS):
                with running(stream, "local[2,20]", processingTime="0 seconds") as process:
                    if number % 2:
                        workers += kill_a_worker(process)
                        assert wait_between_commits(stream, process), printed(stream)
                    else:
                        assert wait_for_batches(stream, process), printed(stream)
                        time.sleep(rng.uniform(0, 2))
                    assert process.poll() is None, printed(stream)
                    kill(process)
        assert workers == KILLS // 2
        stream.run()
        wanted = selected(server)
        assert server.sql("SHOW BINARY LOGS")[0][0] > "binlog.000001"
    arrived = stream.arrived().persist()
    counts = arrived.groupBy("op").count().collect()
    assert {row["op"]: row["count"] for row in counts} == load.counted
    assert arrived.select("file", "pos", "row").distinct().count() == arrived.count()
    found = rebuilt(arrived, wanted)
    arrived.unpersist()
    different = {key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key)}
    assert [(key, found.get(key), wanted.get(key)) for key in sorted(different)[:3]] == []
    assert {table for table, _ in wanted} == set(TABLES)


def first_needed(stream: Stream) -> str:
    """Return the file in which the next batch begins."""
    offset = stream.checkpoint / "offsets" / str(newest(stream.checkpoint / "commits"))
    # Spark's own lines come before that of the source.
    return str(json.loads(offset.read_text().splitlines()[-1])["file"]) if offset.exists() else ""


def printed(stream: Stream) -> str:
    """Return the end of what the query printed."""
    return (stream.place / "log").read_text(errors="replace")[-4000:]


def selected(server: Server) -> Rows:
    """Return the rows of the source."""
    with closing(server.client("k")) as client, client.cursor(DictCursor) as cursor:
        found: Rows = {}
        for table in TABLES:
            cursor.execute(f"SELECT * FROM {table}")
            for row in cursor.fetchall():
                found[table, row["id"]] = {name: told(row[name], name) for name in row}
        return found


def rebuilt(changes: DataFrame, like: Rows) -> Rows:
    """Return the current rows, with the columns that the source's tables have now.

    Rows from before an ADD COLUMN lack the column, which is NULL.
    """
    columns = {table: list(row) for (table, _), row in like.items()}
    found: Rows = {}
    for table, after in latest(changes).select("table", "after").collect():
        row = json.loads(after, parse_float=Decimal)
        found[table, row["id"]] = {name: told(row.get(name), name) for name in columns[table]}
    return found


def told(value: object, name: str) -> object:
    """Return a value of either side in one form."""
    match value:
        case bytes():
            return b64encode(value).decode()
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S.%f}"
        # JSON is a type of its own in MySQL, and a text in MariaDB.
        case str() if name == "doc":
            return json.loads(value)
        case _:
            return value
