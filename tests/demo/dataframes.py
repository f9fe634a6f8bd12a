"""The demonstration's own binary logs as DataFrames."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from tests.servers.mysqld import Server

DATABASE: Final = "d0"
TABLE: Final = "accounts"
TOP: Final = 6
"""Lines of a list."""
DIFFERENT: Final = "DIFFERENT"


@dataclass(frozen=True, slots=True)
class Moment:
    """What the source said of the table at a position in its binary log."""

    position: str
    rows: int
    checksum: int


def moment(source: Server) -> Moment:
    """Ask the source for the table and the position, while the table does not change."""
    columns = "id, name, balance, kind, IFNULL(note, 'NULL')"
    with closing(source.client(DATABASE)) as client, client.cursor() as cursor:
        cursor.execute(f"FLUSH TABLES {TABLE} WITH READ LOCK")
        cursor.execute("SHOW BINARY LOG STATUS")
        ((file, offset, *_),) = cursor.fetchall()
        cursor.execute(f"SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', {columns}))) FROM {TABLE}")
        ((rows, checksum),) = cursor.fetchall()
        cursor.execute("UNLOCK TABLES")
    return Moment(f"{file}:{offset}", int(rows), int(checksum or 0))


@dataclass(frozen=True, slots=True)
class Logs:
    """The source's binary logs, and a moment in them."""

    folder: Path
    moment: Moment

    @property
    def files(self) -> list[Path]:
        """The files, in their order."""
        return sorted(self.folder.glob("binlog.[0-9]*"))

    def read(self, spark: SparkSession, shape: str, **options: str) -> DataFrame:
        """Return them in one of the shapes."""
        reader = spark.read.format("mtsd_binlog").option("shape", shape)
        return reader.options(**options).load(f"{self.folder}/binlog.[0-9]*")


def rows_a_second(spark: SparkSession, logs: Logs) -> Iterator[str]:
    """Yield how many rows a second changed, by table."""
    # The load truncates and renames tables too, of which there are no rows to count.
    logs.read(
        spark, "changes", columns="schema,table,commit_time", unseen_changes="skip"
    ).createOrReplaceTempView("c")
    tables = spark.sql(f"""
        SELECT schema, table, sum(rows) AS rows, max(rows) AS most, max(seconds) AS seconds
        FROM (
            SELECT schema, table, date_trunc('second', commit_time) AS second, count(*) AS rows,
                timestampdiff(SECOND, min(min(commit_time)) OVER (),
                    max(max(commit_time)) OVER ()) + 1 AS seconds
            FROM c GROUP BY ALL
        )
        GROUP BY ALL ORDER BY rows DESC, schema, table LIMIT {TOP}
    """)
    found = tables.collect()
    yield f"{'rows changed, by table':34}{'rows':>9}{'a second':>10}{'at most':>9}"
    for schema, table, rows, most, seconds in found:
        yield f"  {f'{schema}.{table}':32}{rows:>9,}{rows / seconds:>10,.0f}{most:>9,}"


def largest_transactions(spark: SparkSession, logs: Logs) -> Iterator[str]:
    """Yield the transactions with the most bytes."""
    groups = logs.read(spark, "groups", columns="file,begin,bytes,rows,tables,commit_time")
    found = groups.orderBy("bytes", ascending=False).limit(TOP).collect()
    yield f"{'largest transactions':34}{'bytes':>9}{'rows':>10}  tables"
    for group in found:
        tables = group["tables"]
        more = f" and {len(tables) - 3} more" if len(tables) > 3 else ""
        place = f"{group['file']}:{group['begin']}"
        yield (
            f"  {place:32}{group['bytes']:>9,}{group['rows'] or 0:>10,}"
            f"  {', '.join(tables[:3])}{more}"
        )


def table_at_a_position(spark: SparkSession, logs: Logs) -> Iterator[str]:
    """Yield what the table's changes up to a position make of it, beside what the source said.

    Images may be without columns that have not changed (binlog_row_image), so that each column is
    that of the last change that has it.
    """
    changes = logs.read(
        spark,
        "changes",
        tables=f"{DATABASE}.{TABLE}",
        end=logs.moment.position,
        columns="op,before,after,file,pos,row",
    )
    changes.createOrReplaceTempView("c")
    columns = ", ".join(
        f"max_by(get_json_object(after, '$.{name}'), at)"
        f" FILTER (WHERE array_contains(json_object_keys(after), '{name}')) AS {name}"
        for name in ("name", "balance", "kind", "note")
    )
    ((rows, checksum),) = spark.sql(f"""
        SELECT count(*), sum(crc32(concat_ws('|',
            id, name, CAST(balance AS DECIMAL(14, 2)), kind, ifnull(note, 'NULL'))))
        FROM (
            SELECT id, max_by(op, at) AS last, {columns}
            FROM (
                SELECT *, struct(file, pos, row) AS at,
                    get_json_object(ifnull(before, after), '$.id') AS id
                FROM c
            )
            GROUP BY id
        )
        WHERE last <> 'delete'
    """).collect()
    found = Moment(logs.moment.position, int(rows), int(checksum or 0))
    told = logs.moment
    verdict = "the same" if found == told else DIFFERENT
    yield f"{DATABASE}.{TABLE} as it was at {told.position}, rebuilt from its changes"
    yield f"  {'from the binary logs':32}{found.rows:>9,} rows, checksum {found.checksum:X}"
    yield f"  {'the source at that moment':32}{told.rows:>9,} rows, checksum {told.checksum:X}"
    yield f"  {verdict}"


View = Callable[[SparkSession, Logs], Iterator[str]]
VIEWS: Final[tuple[View, ...]] = (rows_a_second, largest_transactions, table_at_a_position)
"""What is shown, each as lines."""
