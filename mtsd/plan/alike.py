"""Results that are the same, so that a table has one row and a plot one curve for them."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mtsd.plan.advice import TriedCandidate
from mtsd.plan.candidate import Bind

_ALIKE: Final = 0.01
"""The share by which the rates of results may differ that are shown as one."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Results with the same batches and about the same rate.

    They are those of every combination of these policies, workers and binds.
    """

    policies: tuple[str, ...]
    workers: tuple[int, ...]
    binds: tuple[Bind, ...]
    results: tuple[TriedCandidate, ...]

    @property
    def shown(self) -> TriedCandidate:
        """The result that stands for all."""
        return self.results[0]

    @property
    def batch(self) -> int:
        """The batches of all of them."""
        return self.shown.candidate.batch_groups


@dataclass(frozen=True, slots=True)
class Curve:
    """The rates of one batch size by the number of workers, for all `names` with the same ones.

    A name is a policy and how many sets of databases are bound. `results` begin with that of a
    single worker, which is the same for all policies.
    """

    batch: int
    names: tuple[tuple[str, int], ...]
    results: tuple[TriedCandidate, ...]


def alike(results: Iterable[TriedCandidate]) -> list[Alike]:
    """Return the results, with those that are alike as one; the fastest first."""
    groups = [
        Alike(
            (one.candidate.parallel_type,),
            (one.candidate.parallel_workers,),
            (one.candidate.bind,),
            (one,),
        )
        for one in results
    ]
    groups = _merged(
        groups,
        lambda one: (one.workers, one.binds, one.batch),
        lambda one, other: replace(one, policies=(*one.policies, *other.policies)),
    )
    groups = _merged(
        groups,
        lambda one: (one.policies, one.binds, one.batch),
        lambda one, other: replace(one, workers=(*one.workers, *other.workers)),
    )
    groups = _merged(
        groups,
        lambda one: (one.policies, one.workers, one.batch),
        lambda one, other: replace(one, binds=(*one.binds, *other.binds)),
    )
    return sorted(groups, key=lambda one: -one.shown.outcome.rate)


def _merged(
    together: Sequence[Alike],
    key: Callable[[Alike], Hashable],
    merge: Callable[[Alike, Alike], Alike],
) -> list[Alike]:
    """Merge those with the same key and about the same rate."""
    kept: list[Alike] = []
    by_key: dict[Hashable, list[int]] = defaultdict(list)
    for one in together:
        places = by_key[key(one)]
        for place in places:
            if _is_alike(kept[place].shown, one.shown):
                merged = merge(kept[place], one)
                kept[place] = replace(merged, results=(*kept[place].results, *one.results))
                break
        else:
            places.append(len(kept))
            kept.append(one)
    return kept


def curves(results: Iterable[TriedCandidate]) -> list[Curve]:
    """Return the curves of a plot, with those that would hide each other as one."""
    single: dict[int, TriedCandidate] = {}
    lines: dict[tuple[int, str, int], list[TriedCandidate]] = defaultdict(list)
    for result in results:
        one = result.candidate
        if one.parallel_workers <= 1:
            single[one.batch_groups] = result
        else:
            lines[one.batch_groups, one.parallel_type, len(one.bind)].append(result)
    found: list[Curve] = []
    for (batch, policy, bound), line in lines.items():
        row = [*([single[batch]] if batch in single else []), *line]
        row.sort(key=lambda result: result.candidate.parallel_workers)
        curve = Curve(batch, ((policy, bound),), tuple(row))
        for place, other in enumerate(found):
            if _coincide(other, curve):
                found[place] = replace(other, names=(*other.names, *curve.names))
                break
        else:
            found.append(curve)
    drawn = {curve.batch for curve in found}
    found += [
        Curve(batch, ((result.candidate.parallel_type, 0),), (result,))
        for batch, result in single.items()
        if batch not in drawn
    ]
    return found


def _coincide(one: Curve, other: Curve) -> bool:
    return (
        one.batch == other.batch
        and len(one.results) == len(other.results)
        and all(
            a.candidate.parallel_workers == b.candidate.parallel_workers and _is_alike(a, b)
            for a, b in zip(one.results, other.results, strict=True)
        )
    )


def _is_alike(one: TriedCandidate, other: TriedCandidate) -> bool:
    return abs(one.outcome.rate - other.outcome.rate) <= _ALIKE * one.outcome.rate
