"""Filters given as options.

None come from Spark's queries: Spark keeps the filters of a DataFrame's last query with the source,
and they would also apply to other queries of the same DataFrame.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from mtsd.spark.options.options import Options
from mtsd.spark.options.row_filters import ColumnTest, RowFilters

FULL_NAME: Final = "schema.table"
"""The name of a virtual column that combines both names."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def option_filters(options: Options) -> RowFilters:
    """Return the filters that the options specify."""
    tests: list[ColumnTest] = []
    if options.schemas:
        tests.append(ColumnTest("schema", "=", options.schemas))
    if options.tables:
        schemas = tuple(dict.fromkeys(schema for schema, _ in options.tables))
        names = tuple(f"{schema}.{table}" for schema, table in options.tables)
        tests += [ColumnTest("schema", "=", schemas), ColumnTest(FULL_NAME, "=", names)]
    if options.ops:
        tests.append(ColumnTest("op", "=", options.ops))
    if options.since is not None:
        tests.append(ColumnTest("commit_time", ">=", (_microseconds(options.since),)))
    if options.until is not None:
        tests.append(ColumnTest("commit_time", "<", (_microseconds(options.until),)))
    return RowFilters(tuple(tests))


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
