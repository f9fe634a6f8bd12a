"""The backlog's small transactions as one binlog file, recorded once and kept in the cache."""

import shutil
from pathlib import Path
from typing import Final

from benchmarks.parts import backlog
from tests.servers.provision import CACHE

TRANSACTIONS: Final = 20_000
DATABASES: Final = 8
NAME: Final = "binlog.000001"
_WRITERS: Final = 16
_FEW: Final = 4
_FOLDER: Final = CACHE / "benchmarks"


def recorded(databases: int = DATABASES) -> Path:
    """Return the file, which has TRANSACTIONS of them; a server creates it if it is missing.

    Where they are all in one database, as many clients have committed them as in the other loads.
    """
    folder = f"{TRANSACTIONS}-small-transactions"
    if databases != DATABASES:
        folder += f"-{databases}"
    path = _FOLDER / folder / NAME
    if not path.is_file():
        clients = _WRITERS if databases == 1 else _FEW
        path.parent.mkdir(parents=True, exist_ok=True)
        with backlog.loaded_source(TRANSACTIONS, databases, clients) as source:
            source.sql("FLUSH BINARY LOGS")
            part = path.with_suffix(".part")
            shutil.copyfile(source.datadir / NAME, part)
        part.rename(path)
    return path
