"""Runs the blocks of docs/spark-walkthrough.md, and compares their output with the page's."""

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from mtsd.spark.source.data_source import BinlogDataSource
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[3] / "docs" / "spark-walkthrough.md"
FOLDER = "/var/lib/mysql"
LAKE = "/srv/lake"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int


def blocks() -> Iterator[Block]:
    page = PAGE.read_text()
    for found in _BLOCK.finditer(page):
        yield Block(found[1], found[2], page.count("\n", 0, found.start(2)))


def test_every_block_does_what_the_page_says(spark: SparkSession, tmp_path: Path) -> None:
    has_streams = BinlogDataSource.streamReader is not DataSource.streamReader
    names: dict[str, object] = {"spark": spark}
    printed = ""
    with Server() as server:
        for block in blocks():
            if "readStream" in block.text and not has_streams:
                return
            if block.language == "sql":
                server.sql(block.text)
                # SET GLOBAL does not affect existing connections, but these are new.
                continue
            if block.language == "text":
                assert _lines(printed) == _lines(block.text), f"{PAGE.name}:{block.line}"
                continue
            text = block.text.replace(FOLDER, str(server.datadir))
            code = compile("\n" * block.line + text.replace(LAKE, str(tmp_path)), PAGE, "exec")
            with redirect_stdout(StringIO()) as output:
                exec(code, names)  # noqa: S102
            printed = output.getvalue()


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
