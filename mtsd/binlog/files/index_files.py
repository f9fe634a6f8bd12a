"""The files that MariaDB from 11.4 on keeps beside binary logs: GTID indexes."""

from collections.abc import Collection
from typing import Final

_SUFFIX: Final = ".idx"


def without_indexes(files: Collection[str]) -> list[str]:
    """Return the files, which a pattern has found, without the indexes of others among them."""
    there = set(files)
    return [
        file
        for file in files
        if not (file.endswith(_SUFFIX) and file.removesuffix(_SUFFIX) in there)
    ]
