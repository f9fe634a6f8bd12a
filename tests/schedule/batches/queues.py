"""Queues of a worker with groups in them, what is in their groups, and what is taken from them."""

from mtsd.model.group import Group
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent
from mtsd.schedule.batches.worker_queue import WorkerQueue

MANY = 1000
QUERY = QueryEvent(
    thread_id=1,
    exec_time=0,
    error_code=0,
    text=StatementText(b""),
    microseconds=None,
    database="a",
    updated_databases=("a",),
    over_max=False,
    invoker=None,
    ddl_xid=None,
    timestamp=0,
)
"""Of a session in database a, without a text."""


def queue_of(
    *groups: Group, unmet: dict[int, int] | None = None, marks: dict[int, int] | None = None
) -> WorkerQueue:
    queue = WorkerQueue()
    for each in groups:
        queue.put(each, (unmet or {}).get(each.number, 0), (marks or {}).get(each.number, 0))
    return queue


def numbers(batch: tuple[Group, ...]) -> list[int]:
    return [each.number for each in batch]
