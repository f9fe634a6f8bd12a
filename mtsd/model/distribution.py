"""How databases are distributed over the workers by hand: bound, pinned and weighed (WL#5569)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from mtsd.model.names import folded

HEAVIEST = 1000
"""The largest weight of a database; 1 is the weight of one of which nothing is said."""


class NotPossibleError(ValueError):
    """A distribution cannot be; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What a person decides about the distribution of databases; workers are named by their Ids.

    `bind` has sets of databases that count as one, none of them in two sets. `pin` has pairs of a
    database and the Id, from 1, of the worker that gets its groups. `weigh` has pairs of a database
    and how many others it counts for in the choice of the least occupied worker.
    """

    bind: tuple[tuple[str, ...], ...] = ()
    pin: tuple[tuple[str, int], ...] = ()
    weigh: tuple[tuple[str, int], ...] = ()

    @property
    def partitions(self) -> dict[str, str]:
        """By bound database: the name of its set, which is that of all its databases with "+"."""
        return {name: "+".join(together) for together in self.bind for name in together}

    @property
    def workers(self) -> dict[str, int]:
        """By pinned database, and by those bound to one: the index of its worker, from 0."""
        indexes = {name: worker - 1 for name, worker in self.pin}
        for together in self.bind:
            for pinned in [indexes[name] for name in together if name in indexes]:
                indexes |= dict.fromkeys(together, pinned)
        return indexes

    @property
    def weights(self) -> dict[str, int]:
        """By database or bound set: its weight, if it is not 1; that of a set is their sum."""
        by_name = dict(self.weigh)
        for together in self.bind:
            by_name["+".join(together)] = sum(by_name.get(name, 1) for name in together)
        return by_name

    def sets(self, names: Iterable[str]) -> Iterator[tuple[str, ...]]:
        """Yield each bound set, and each of these databases that is in none, by itself."""
        bound = set(chain.from_iterable(self.bind))
        yield from self.bind
        for name in names:
            if name not in bound:
                yield (name,)

    def problems(self, workers: int) -> Iterator[str]:
        """Yield what is impossible about the pins with so many workers, one clear line each."""
        pinned = dict(self.pin)
        for name, worker in self.pin:
            if worker > max(workers, 1):
                yield f'database "{name}" is pinned to worker {worker}, and there are {workers}'
        for together in self.bind:
            named = [(name, pinned[name]) for name in together if name in pinned]
            if len({worker for _, worker in named}) > 1:
                listed = " and ".join(f'"{name}" to worker {worker}' for name, worker in named)
                yield f"databases that are bound together are pinned apart: {listed}"

    def with_bound(self, databases: Sequence[str]) -> "Distribution":
        """Return one in which these databases are a set, and no longer in other ones."""
        if len(set(databases)) < 2:
            raise NotPossibleError("to bind takes at least two databases")
        left = self.without_bound(databases).bind
        return replace(self, bind=(*left, tuple(dict.fromkeys(databases))))

    def without_bound(self, databases: Sequence[str]) -> "Distribution":
        """Return one in which these databases are in no set."""
        left = [tuple(name for name in each if name not in databases) for each in self.bind]
        return replace(self, bind=tuple(each for each in left if len(each) > 1))

    def with_joined(self, joined: Iterable[frozenset[str]]) -> "Distribution":
        """Return one in which databases that are joined are one set, with what is bound to them."""
        bind = list(self.bind)
        for names in joined:
            touched = [each for each in bind if not names.isdisjoint(each)]
            together = names.union(*touched)
            if len(together) > max(map(len, touched), default=1):
                bind = [each for each in bind if each not in touched]
                bind.append(tuple(sorted(together)))
        return replace(self, bind=tuple(bind))

    def in_lower_case(self) -> "Distribution":
        """Return one by the names on a target that has them in lower case.

        What becomes one name there belongs to the sets of all; its last pin and weight count.
        """
        sets = Distribution()
        for together in self.bind:
            names = dict.fromkeys(map(folded, together))
            touched = [each for each in sets.bind if not names.keys().isdisjoint(each)]
            names = dict.fromkeys(chain(*touched, names))
            left = tuple(each for each in sets.bind if each not in touched)
            sets = replace(sets, bind=(*left, tuple(names)))
        return replace(
            sets,
            pin=tuple({folded(name): worker for name, worker in self.pin}.items()),
            weigh=tuple({folded(name): weight for name, weight in self.weigh}.items()),
        )

    def with_pinned(self, databases: Sequence[str], worker: int) -> "Distribution":
        """Return one in which these databases are pinned to the worker, 0 for none.

        Raises NotPossibleError if one of them would remain with a worker nevertheless.
        """
        given = dict.fromkeys(databases, worker)
        result = replace(self, pin=_changed(self.pin, given, nothing=0))
        if not worker:
            for name in databases:
                if name in result.workers:
                    raise NotPossibleError(
                        f'database "{name}" remains with worker {result.workers[name] + 1}: it is'
                        " bound to one that is pinned to it; unpin that one, or unbind this one"
                    )
        return result

    def with_weight(self, databases: Sequence[str], weight: int) -> "Distribution":
        """Return one in which each of these databases has a weight."""
        if not 1 <= weight <= HEAVIEST:
            raise NotPossibleError(f"a weight is from 1 to {HEAVIEST}, not {weight}")
        given = dict.fromkeys(databases, weight)
        return replace(self, weigh=_changed(self.weigh, given, nothing=1))


def first_pinned(databases: Sequence[str], workers: Mapping[str, int]) -> int:
    """Return the worker that the first pinned one of these databases has; -1 if none is pinned."""
    for database in databases:
        if database in workers:
            return workers[database]
    return -1


def _changed(
    before: Sequence[tuple[str, int]], given: Mapping[str, int], *, nothing: int
) -> tuple[tuple[str, int], ...]:
    return tuple(
        (name, value) for name, value in {**dict(before), **given}.items() if value != nothing
    )
