"""What `mtsd top` shows: rates between two statuses, which worker is looked at, what a key does.

Pure: it is told the time, and draws nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mtsd.control.status import DatabaseStatus, Status, WorkerStatus

UP: Final = "\x1b[A"
DOWN: Final = "\x1b[B"


@dataclass(frozen=True, slots=True)
class Rates:
    """What was done in each second between two statuses; empty where only one is there yet."""

    groups: float = 0.0
    transactions: float = 0.0
    workers: Mapping[int, float] = field(default_factory=dict)
    """Groups by the worker's Id."""
    databases: Mapping[str, float] = field(default_factory=dict)
    waits: Mapping[str, float] = field(default_factory=dict)
    """Seconds waited by cause."""


NO_RATES: Final = Rates()


def rates(before: Status | None, now: Status, seconds: float) -> Rates:
    """Return the rates; those of another daemon, or of a run before, do not count."""
    if before is None or seconds <= 0 or before.daemon != now.daemon:
        return NO_RATES

    def per_second(earlier: float, later: float) -> float:
        return max(0.0, later - earlier) / seconds

    workers = {worker.id: worker.groups for worker in before.workers}
    databases = {database.name: database.groups for database in before.databases}
    return Rates(
        per_second(before.totals.groups, now.totals.groups),
        per_second(before.totals.transactions, now.totals.transactions),
        {each.id: per_second(workers.get(each.id, 0), each.groups) for each in now.workers},
        {each.name: per_second(databases.get(each.name, 0), each.groups) for each in now.databases},
        {
            cause: per_second(before.totals.waits.get(cause, 0.0), waited)
            for cause, waited in now.totals.waits.items()
        },
    )


def busiest(status: Status, rates: Rates, most: int) -> Sequence[DatabaseStatus]:
    """Return the databases to show: the most delayed ones, then those with the most groups."""
    return sorted(
        status.databases,
        key=lambda each: (-each.lag_seconds, -rates.databases.get(each.name, 0.0), each.name),
    )[:most]


@dataclass(frozen=True, slots=True)
class View:
    """What a person has chosen; `selected` is a worker's Id, 0 for none."""

    selected: int = 0
    inside: bool = False
    """Whether the worker is looked into."""
    message: str = ""
    """The answer to the last key."""


@dataclass(frozen=True, slots=True)
class Pressed:
    """What a key asks for, beside another view: to end, or to change a worker."""

    view: View
    ends: bool = False
    change: Mapping[str, object] = field(default_factory=dict)
    """The change to post to the daemon, see `mtsd.control.distribute_route`."""


def pressed(view: View, key: str, status: Status | None) -> Pressed:
    """Decide what a key does."""
    view = replace(view, message="")
    ids = [worker.id for worker in status.workers] if status is not None else []
    selected = view.selected if view.selected in ids else 0
    match key:
        case "q" | "\x03" | "\x04":
            return Pressed(view, ends=True)
        case "j" if ids:
            return Pressed(replace(view, selected=_next(ids, selected, 1)))
        case "k" if ids:
            return Pressed(replace(view, selected=_next(ids, selected, -1)))
        case "\r" | "\n" | "i" if selected:
            return Pressed(replace(view, inside=not view.inside))
        case "\x1b" | "b":
            return Pressed(replace(view, inside=False))
        case "f" if selected and status is not None:
            frozen = selected in status.distribution.frozen
            do = "unfreeze" if frozen else "freeze"
            return Pressed(view, change={"do": do, "worker": selected})
        case "f" | "i" | "\r" | "\n":
            return Pressed(replace(view, message="choose a worker first: j and k, or the arrows"))
    return Pressed(view)


_ARROWS: Final = {UP: "k", DOWN: "j"}


def keys_of(text: str) -> Sequence[str]:
    """Return the keys that a terminal has sent, the arrows by the letters that do the same."""
    for arrow, letter in _ARROWS.items():
        text = text.replace(arrow, letter)
    # An escape that begins nothing known is the key of that name.
    return list(text.replace("\x1b[", ""))


def _next(ids: Sequence[int], selected: int, step: int) -> int:
    if selected not in ids:
        return ids[0 if step > 0 else -1]
    return ids[(ids.index(selected) + step) % len(ids)]


def worker_of(status: Status, selected: int) -> WorkerStatus | None:
    """Return the worker of that Id."""
    return next((worker for worker in status.workers if worker.id == selected), None)
