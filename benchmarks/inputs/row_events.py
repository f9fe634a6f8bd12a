"""Row events of ten columns, a JSON one among them, half of them updates, recorded once."""

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.servers.mysqld import Server
from tests.servers.provision import CACHE

ROWS: Final = 20_000
"""Of each kind: inserted in one row event each, or in transactions of many rows, then updated."""
IN_ONE_TRANSACTION: Final = 100
SINGLE: Final = "single-row transactions"
MULTI: Final = "multi-row transactions"
_FOLDER: Final = CACHE / "benchmarks"
_TABLE: Final = """CREATE TABLE orders (
    id BIGINT UNSIGNED PRIMARY KEY, customer INT NOT NULL, state ENUM('new', 'paid', 'sent'),
    amount DECIMAL(12,2) NOT NULL, weight DOUBLE, placed DATETIME(3) NOT NULL,
    changed TIMESTAMP(6) NOT NULL, name VARCHAR(80) NOT NULL, note VARCHAR(400), detail JSON
)"""


def recorded(kind: str) -> Path:
    """Return the binlog file of one kind of transactions; a server makes it where it is missing."""
    path = _FOLDER / f"{ROWS}-rows-{kind.split('-', maxsplit=1)[0]}" / "binlog.000002"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        options = {
            "binlog_row_metadata": "FULL",
            "gtid_mode": "ON",
            "enforce_gtid_consistency": "ON",
        }
        with Server(options) as server:
            server.sql(f"CREATE DATABASE shop; USE shop; {_TABLE}; FLUSH BINARY LOGS")
            with closing(server.client("shop")) as client, client.cursor() as cursor:
                for statement in _statements(1 if kind == SINGLE else IN_ONE_TRANSACTION):
                    cursor.execute(statement)
            server.sql("FLUSH BINARY LOGS")
            part = path.with_suffix(".part")
            shutil.copyfile(server.datadir / path.name, part)
        part.rename(path)
    return path


def _statements(at_once: int) -> Iterator[str]:
    rng = random.Random(9)
    for first in range(1, ROWS + 1, at_once):
        rows = ", ".join(_row(rng, number) for number in range(first, first + at_once))
        yield f"INSERT INTO orders VALUES {rows}"
        yield (
            "UPDATE orders SET state = 'paid', amount = amount + 1, changed = NOW(6),"
            " detail = JSON_SET(detail, '$.paid', true)"
            f" WHERE id BETWEEN {first} AND {first + at_once - 1}"
        )


def _row(rng: random.Random, number: int) -> str:
    words = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "größe", "straße"]
    detail = {
        "sku": f"A-{rng.randrange(10**6):06d}",
        "count": rng.randrange(1, 50),
        "price": round(rng.random() * 500, 2),
        "paid": False,
        "tags": rng.sample(words, 3),
        "address": {"city": rng.choice(words), "zip": f"{rng.randrange(10**5):05d}", "floor": None},
    }
    note = "NULL" if rng.random() < 0.3 else "'" + " ".join(rng.choices(words, k=8)) + "'"
    return (
        f"({number}, {rng.randrange(10**6)}, 'new', {rng.randrange(10**7) / 100:.2f},"
        f" {rng.random() * 10:.3f}, '2024-05-06 07:08:09.{rng.randrange(1000):03d}', NOW(6),"
        f" '{rng.choice(words)} {rng.choice(words)}', {note},"
        f" '{json.dumps(detail, ensure_ascii=False)}')"
    )
