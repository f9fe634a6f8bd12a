"""What `scripts/demo --spark` shows of its own binary logs."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.demo.dataframes import VIEWS, Logs, moment
from tests.load.mixed import MixedLoad
from tests.servers.mysqld import Server

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]


@pytest.mark.long
def test_views_of_a_mixed_load(spark: SparkSession) -> None:
    with Server({"binlog_row_metadata": "FULL"}) as source:
        load = MixedLoad(source, seed=3)
        load.prepare()
        load.run(transactions=800)
        logs = Logs(Path(source.datadir), moment(source))
        load.run(transactions=800)
        rates, largest, rebuilt = [list(view(spark, logs)) for view in VIEWS]
    assert any(".accounts " in line for line in rates)
    assert len(largest) > 3
    assert rebuilt[-1].strip() == "the same"
