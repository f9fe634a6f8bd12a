"""Rows decoded a second of CPU, compiled and pure, beside mysql-replication on the same bytes.

Each figure is of processes of their own (`benchmarks.processes.decoding`), which take turns; what
counts is the least CPU of all runs, as in `benchmarks.parts.cpu`.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

from benchmarks.figures import Figure, Range
from benchmarks.inputs import row_events
from benchmarks.parts.cpu import environ, variants
from benchmarks.processes.decoding import COLUMNS, DECODERS, THEIRS

_TURNS: Final = 3
_RUNS: Final = {THEIRS: 1}
"""In each turn's process; 5 of the others."""
LEAST: Final = {"pure": 10.0, "compiled": 20.0}
"""Times mysql-replication's rows a second that the columns have to reach."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a decoder does: rows a second of CPU."""

    load: str
    variant: str
    decoder: str
    rows: int
    rate: float


def measured() -> list[Decoded]:
    """Return the figures of every load, variant and decoder; mysql-replication is once of a load.

    Raises subprocess.CalledProcessError.
    """
    found: dict[tuple[str, str, str], Decoded] = {}
    with variants("") as trees:
        for load in (row_events.MULTI, row_events.SINGLE):
            file = row_events.recorded(load)
            for _ in range(_TURNS):
                for variant in trees:
                    for decoder in DECODERS:
                        if decoder == THEIRS and variant is not trees[0]:
                            continue
                        command = [
                            sys.executable,
                            "-m",
                            "benchmarks.processes.decoding",
                            str(file),
                            decoder,
                        ]
                        done = subprocess.run(
                            [*command, "--runs", str(_RUNS.get(decoder, 5))],
                            cwd=variant.tree, env=environ(variant), stdout=subprocess.PIPE,
                            text=True, check=True,
                        )  # fmt: skip
                        result = json.loads(done.stdout)
                        name = "" if decoder == THEIRS else variant.name
                        rate = result["rows"] / min(result["seconds"])
                        before = found.get((load, name, decoder))
                        if before is None or rate > before.rate:
                            found[load, name, decoder] = Decoded(
                                load, name, decoder, result["rows"], rate
                            )
    return list(found.values())


def figures(found: list[Decoded]) -> list[Figure]:
    """Return what has to be reached, by load and variant."""
    theirs = {one.load: one.rate for one in found if one.decoder == THEIRS}
    return [
        Figure(
            f"{one.load}, {one.variant}: columns / mysql-replication",
            Range.of([one.rate / theirs[one.load]]),
            LEAST[one.variant],
            at_most=False,
            unit=" times",
        )
        for one in found
        if one.decoder == COLUMNS
    ]


def table(found: list[Decoded]) -> str:
    """Return a table of rows a second of CPU, and how many times mysql-replication's they are."""
    theirs = {one.load: one.rate for one in found if one.decoder == THEIRS}
    lines = ["\nRows decoded a second of CPU", f"  {'':58}{'rows/s':>12}{'times':>8}"]
    for one in found:
        name = f"{one.load}: {one.decoder}{', ' if one.variant else ''}{one.variant}"
        lines.append(f"  {name:58}{one.rate:>12,.0f}{one.rate / theirs[one.load]:>8.1f}")
    return "\n".join(lines)
