"""A complete plan, and the JSON object that `mtsd plan --json` prints."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from mtsd.plan.advice import TriedCandidate, excesses, reasons, recommended
from mtsd.plan.candidate import Candidate
from mtsd.plan.costs import Costs, Machines
from mtsd.plan.load import Load


@dataclass(frozen=True, slots=True)
class FittedPoint:
    """A measured point and its simulated rate, in groups per second."""

    candidate: Candidate
    measured: float
    predicted: float

    @property
    def off(self) -> float:
        """How far the prediction is off: 0.1 is 10% too high."""
        return self.predicted / self.measured - 1.0 if self.measured else 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What was simulated and with which costs; `fits` is empty if the costs were not measured.

    `simulated` is the number of groups used, and `missing` says what could not be simulated.
    """

    load: Load
    simulated: int
    costs: Costs
    machines: Machines
    fits: tuple[FittedPoint, ...]
    results: tuple[TriedCandidate, ...]
    missing: tuple[str, ...] = ()

    @property
    def best(self) -> TriedCandidate:
        """The recommended configuration."""
        return recommended(self.results)

    @property
    def serial(self) -> float:
        """The rate of one worker with the smallest batches, the baseline of speed-ups."""
        ordered = sorted(
            self.results, key=lambda r: (r.candidate.parallel_workers, r.candidate.batch_groups)
        )
        return ordered[0].outcome.rate

    def reasons(self) -> Sequence[str]:
        """Return what limits the recommended configuration."""
        return reasons(self.best, self.load, self.machines)

    def warnings(self) -> Sequence[str]:
        """Return what makes the recommendation less certain, or needs a word."""
        excess = excesses(self.best, self.load, self.machines)
        if self.costs.background:
            excess.append(
                f"something else wants the processors, as {self.costs.background} threads would:"
                " measure on a quiet machine"
            )
        if not self.fits:
            excess.append(
                "nothing was measured: the costs are typical ones, so only ratios mean something"
            )
        return excess

    def document(self) -> Mapping[str, object]:
        """Return the plan as a dictionary for JSON."""
        best = self.best
        serial = self.serial or 1.0
        return {
            "recommended": {
                "replica": best.candidate.settings(),
                "rate": best.outcome.rate,
                "speed_up": best.outcome.rate / serial,
            },
            "held_back_by": list(self.reasons()),
            "warnings": list(self.warnings()),
            "load": asdict(self.load),
            "simulated_groups": self.simulated,
            "results": [
                {
                    **result.candidate.settings(),
                    "speed_up": result.outcome.rate / serial,
                    **result.outcome.document(),
                    "held_back_by": reasons(result, self.load, self.machines),
                }
                for result in self.results
            ],
            "costs": asdict(self.costs),
            "machines": asdict(self.machines),
            "calibration": [
                {
                    **fit.candidate.settings(),
                    "measured": fit.measured,
                    "predicted": fit.predicted,
                    "off": fit.off,
                }
                for fit in self.fits
            ],
            "missing": list(self.missing),
        }

    def to_json(self) -> str:
        """Return the plan as JSON text."""
        # A name that is not UTF-8 contains surrogates, which cannot be written as UTF-8.
        text = json.dumps(self.document(), indent=2, ensure_ascii=False)
        return text.encode("utf-8", "backslashreplace").decode()


def toml(candidate: Candidate) -> str:
    """Return a configuration as its lines in `[replica]`."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in candidate.settings().items()]
    return "\n".join(["[replica]", *lines])
