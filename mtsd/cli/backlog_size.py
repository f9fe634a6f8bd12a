"""How far a replica is behind its source, in bytes of binary logs."""

import asyncio

from mtsd.config import Settings
from mtsd.model.errors import MtsdError
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.operations.stored_status import read_stored
from mtsd.replica.core.endpoints import endpoint
from mtsd.source.binlog_files import list_files


def backlog_size(settings: Settings) -> int | None:
    """Return the bytes between the stored position and the source's end.

    None if there is no position, it names no file that is there, or a server cannot be asked: then
    the daemon, which needs them too, says why.
    """
    try:
        return asyncio.run(_size(settings))
    except MtsdError:
        return None


async def _size(settings: Settings) -> int | None:
    executed = (await read_stored(settings)).executed
    files = await list_files(endpoint("source", settings.source))
    if executed.file not in {file.name for file in files}:
        return None
    first = Position(executed.file, FIRST_EVENT)
    sizes = [file.size for file in files if Position(file.name, FIRST_EVENT) >= first]
    return max(0, sum(sizes) - executed.pos)
