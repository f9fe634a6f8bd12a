"""The rows that `latest` makes of a stream's changes are the source's, whatever was killed."""

import json
import os
import random
import signal
import time
from base64 import b64encode
from collections import Counter
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
from tests.spark.cluster_reads import executors
from tests.spark.evolving_load import TABLES, evolving_load
from tests.spark.query_kills import (
    kill,
    kill_a_worker,
    newest,
    prepared,
    running,
    wait_between_commits,
    wait_for_batches,
)
from tests.spark.standalone import StandaloneCluster
from tests.spark.streams import Stream

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(2400)]

KILLS: Final = int(os.environ.get("SPARK_KILLS", "20"))
"""Kills of the driver; before every second of them, an executor's process is killed."""
SERVERS: Final[dict[str, Options]] = {
    "9.7": OPTIONS,
    "11.8": {"binlog_format": "ROW", "binlog_row_metadata": "FULL", "log_bin_compress": "ON"},
}

CHANGES: Final = {
    "shape": "changes", "schemas": "k", "max_bytes": "1m", "max_partition_bytes": "250k",
}  # fmt: skip
NO_PAUSE: Final = {"processingTime": "0 seconds"}

Rows = dict[tuple[str, int], dict[str, object]]
"""By table and primary key."""


@pytest.mark.parametrize("series", SERVERS)
@pytest.mark.parametrize("where", ["folder", "live"])
def test_it_is_the_sources(spark: SparkSession, series: str, where: str, tmp_path: Path) -> None:
    rng = random.Random(KILLS)
    with source(series) as server:
        options = {
            "folder": {"path": str(server.datadir)},
            "live": {
                "host": "127.0.0.1", "port": str(server.port), "user": "root",
                "server_ids": "4401-4404",
            },
        }[where]  # fmt: skip
        stream = Stream(spark, "", tmp_path, {**options, **CHANGES})
        workers = 0
        with (
            evolving_load(server, lambda: first_needed(stream)) as load,
            prepared(stream, "local[2,20]", NO_PAUSE, again=True) as begun,
        ):
            for number in range(KILLS):
                with begun() as process:
                    if number % 2:
                        workers += kill_a_worker(process)
                        assert wait_between_commits(stream, process), printed(stream)
                    else:
                        assert wait_for_batches(stream, process), printed(stream)
                        time.sleep(rng.uniform(0, 2))
                    assert process.poll() is None, printed(stream)
                    kill(process)
        assert workers == KILLS // 2
        compare(stream, server, load.counted)


def test_executors_of_a_cluster_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    """Each is a JVM, whose tasks are run again by another one."""
    rng = random.Random(KILLS)
    with source("9.7") as server, StandaloneCluster() as cluster:
        stream = Stream(spark, "", tmp_path, {"path": str(server.datadir), **CHANGES})
        with (
            evolving_load(server, lambda: first_needed(stream)) as load,
            running(stream, cluster.address, **NO_PAUSE) as process,
        ):
            for number in range(KILLS // 2):
                assert wait_for_batches(stream, process), printed(stream)
                time.sleep(rng.uniform(0, 1))
                while not (found := executors(cluster.worker_pids[number % 2])):
                    assert process.poll() is None, printed(stream)
                    time.sleep(0.1)
                os.kill(found[0], signal.SIGKILL)
            assert wait_for_batches(stream, process), printed(stream)
        compare(stream, server, load.counted)


def source(series: str) -> Server:
    settings = {**SERVERS[series], "max_binlog_size": 262_144}
    return Server(settings, installation=installed(series))


def compare(stream: Stream, server: Server, counted: Counter[str]) -> None:
    """Run a stream to its end, and compare what has arrived with the source."""
    stream.run()
    wanted = selected(server)
    assert server.sql("SHOW BINARY LOGS")[0][0] > "binlog.000001"
    arrived = stream.arrived().persist()
    counts = arrived.groupBy("op").count().collect()
    assert {row["op"]: row["count"] for row in counts} == counted
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
