"""Filters given as options: Spark pushes none down to a stream, and these apply to each row."""

from typing import Final

from mtsd.spark.options import Options
from mtsd.spark.pushed_filters import ColumnTest, PushedFilters, microseconds

FULL_NAME: Final = "schema.table"
"""The name of a virtual column that combines both names."""


def option_filters(options: Options) -> PushedFilters:
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
        tests.append(ColumnTest("commit_time", ">=", (microseconds(options.since),)))
    if options.until is not None:
        tests.append(ColumnTest("commit_time", "<", (microseconds(options.until),)))
    return PushedFilters(tuple(tests))
