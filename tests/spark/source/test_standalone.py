"""Binary logs on a standalone cluster of a master and two workers."""

import json
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.binlog.recording import OPTIONS
from tests.servers.mysqld import Server
from tests.spark import cluster_reads
from tests.spark.cluster_reads import Work
from tests.spark.standalone import StandaloneCluster

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

TRANSACTIONS = 200


@dataclass(frozen=True)
class Written:
    """Binary logs of a table that was changed at random, and the source's facts about it."""

    folder: Path
    found: list[int]
    """What `cluster_reads.read` has to find."""

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("written")
    rng = random.Random(7)
    changes = 0
    with Server(OPTIONS | {"max_binlog_size": str(1 << 20)}) as server:
        server.sql("CREATE DATABASE w")
        with closing(server.client("w")) as client, client.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(200) NOT NULL,"
                " balance DECIMAL(20, 4) NOT NULL, doc JSON NOT NULL)"
            )
            for number in range(TRANSACTIONS):
                first = number * 20
                values = ", ".join(
                    f"({first + one}, '{rng.random()} größer{'.' * rng.randrange(100)}',"
                    f' {rng.randrange(10**9)}, \'{{"n": {rng.randrange(99)}, "s": ["x", null]}}\')'
                    for one in range(20)
                )
                cursor.execute("BEGIN")
                changes += cursor.execute(f"INSERT INTO t VALUES {values}")
                changes += 2 * cursor.execute(
                    f"UPDATE t SET balance = balance + 1 WHERE id > {first - 200}"
                    f" AND id % 9 = {rng.randrange(9)}"
                )
                changes += cursor.execute(f"DELETE FROM t WHERE id = {rng.randrange(first + 20)}")
                cursor.execute("COMMIT")
            line = "CONCAT_WS('|', id, name, balance, CAST(doc AS CHAR))"
            cursor.execute(f"SELECT COUNT(*), SUM(CRC32({line})) FROM t")
            ((rows, checksum),) = cursor.fetchall()
        server.sql("FLUSH BINARY LOGS")
        for name, *_ in server.sql("SHOW BINARY LOGS")[:-1]:
            shutil.copy(server.datadir / str(name), folder)
    return Written(folder, [changes, changes, int(rows), int(checksum)])


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    with StandaloneCluster() as cluster:
        yield cluster


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """Return an environment for `--archives`, which is also unpacked next to it for the driver.

    It refers to the packages of this environment, so that it is small.
    """
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "all.pth").write_text("\n".join(one for one in sys.path if one))
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as packed:
        packed.add(environment, ".")
    return "env.tar.gz#environment"


@pytest.mark.parametrize("tasks", [[6], pytest.param([1, 6, 48], marks=pytest.mark.long)])
def test_a_cluster_reads_what_the_source_has(
    cluster: StandaloneCluster, written: Written, tmp_path: Path, archive: str, tasks: list[int]
) -> None:
    damaged = tmp_path / "damaged" / min(written.folder.iterdir()).name
    damaged.parent.mkdir()
    data = bytearray((written.folder / damaged.name).read_bytes())
    data[len(data) // 2] ^= 0xFF
    damaged.write_bytes(data)
    work = Work(
        folder=str(written.folder),
        damaged=str(damaged.parent),
        size=written.size,
        tasks=tasks,
        workers=cluster.worker_pids[:1],
    )
    found = cluster.submit(
        Path(cluster_reads.__file__),
        json.dumps(work),
        python="./environment/bin/python",
        archives=archive,
        folder=tmp_path,
    )
    environments = found["environments"]
    assert isinstance(environments, list)
    assert environments
    # Executors use the environment that they have unpacked in their own folders.
    assert all(str(cluster.folder) in str(one) for one in environments)
    for number in tasks:
        assert found[f"{number} tasks"] == written.found
    # Nothing is lost or duplicated if an executor is killed in the middle.
    assert found["killed"] == written.found
    assert 3 < int(str(found["ended before"])) < cluster_reads.MANY_TASKS
    line = str(found["line"])
    assert line.startswith(f"{damaged}: ")
    assert f"(after {damaged.name}:" in line
    assert len(str(found["error"]).splitlines()) < 8
    assert ".java" not in str(found["error"])
