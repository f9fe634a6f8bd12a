"""Queues of a worker with groups in them, and the numbers of what is taken from them."""

from mtsd.model.group import Group
from mtsd.schedule.batches.worker_queue import WorkerQueue

MANY = 1000


def queue_of(
    *groups: Group, unmet: dict[int, int] | None = None, marks: dict[int, int] | None = None
) -> WorkerQueue:
    queue = WorkerQueue()
    for each in groups:
        queue.put(each, (unmet or {}).get(each.number, 0), (marks or {}).get(each.number, 0))
    return queue


def numbers(batch: tuple[Group, ...]) -> list[int]:
    return [each.number for each in batch]
