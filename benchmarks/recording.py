"""The backlog's small transactions as one binlog file, recorded once and kept in the cache."""

import shutil
from pathlib import Path
from typing import Final

from benchmarks import backlog
from tests.servers.provision import CACHE

TRANSACTIONS: Final = 20_000
DATABASES: Final = 8
NAME: Final = "binlog.000001"
_FOLDER: Final = CACHE / "benchmarks"


def recorded() -> Path:
    """Return the file, which has TRANSACTIONS of them; a server creates it if it is missing."""
    path = _FOLDER / f"{TRANSACTIONS}-small-transactions" / NAME
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with backlog.loaded_source(TRANSACTIONS, DATABASES) as source:
            source.sql("FLUSH BINARY LOGS")
            part = path.with_suffix(".part")
            shutil.copyfile(source.datadir / NAME, part)
        part.rename(path)
    return path
