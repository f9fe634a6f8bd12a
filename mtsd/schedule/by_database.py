"""What is pending of each database, under every policy."""

from collections.abc import Iterable
from dataclasses import dataclass

from mtsd.model.group import Group


@dataclass(frozen=True, slots=True)
class PendingOfDatabase:
    """Unfinished groups that update a database: how many, and the oldest's commit time, in µs."""

    groups: int
    oldest_commit_time: int


def pending_by_database(unfinished: Iterable[Group]) -> dict[str, PendingOfDatabase]:
    """Count unfinished groups by the databases that they update."""
    counts: dict[str, int] = {}
    oldest: dict[str, int] = {}
    for group in unfinished:
        commit_time = group.commit_time
        for name in group.databases:
            counts[name] = counts.get(name, 0) + 1
            if commit_time < oldest.setdefault(name, commit_time):
                oldest[name] = commit_time
    return {name: PendingOfDatabase(count, oldest[name]) for name, count in counts.items()}
