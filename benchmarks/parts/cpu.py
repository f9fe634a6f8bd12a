"""The daemon's own CPU by stage, compiled and pure, and optionally that of another revision.

Each variant is a process of its own (`benchmarks.processes.stages`) over the same recorded file.
CPU time is affected by whatever else runs on the machine (caches, clock frequency): the variants
take turns, and the minimum of all runs counts. Instructions, which valgrind counts, are the same
each time; they ignore how long each one takes.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import unpack_archive
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.inputs.recording import recorded
from tests.packaging.building import build
from tests.packaging.toolchain import toolchain
from tests.servers.reaper import register

_ROOT: Final = Path(__file__).resolve().parents[2]
DEFAULT_POLICY: Final = "database"
"""The only one that older revisions know."""
_TURNS: Final = 4
_RUNS: Final = 4
"""Per process."""
_COUNTED: Final = 2000
"""Transactions whose instructions are counted, which takes fifty times as long."""
_VALGRIND: Final = (
    "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
)  # fmt: skip
_REFERENCES: Final = re.compile(r"I\s+refs:\s+([\d,]+)")


class CountingError(RuntimeError):
    """valgrind is missing, or has not reported how many instructions it has counted."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A tree of the project, and what `mtsd` is there."""

    name: str
    tree: Path
    path: tuple[Path, ...]


@dataclass(slots=True)
class Stages:
    """What a transaction costs in each stage: µs of CPU, and thousands of instructions."""

    variant: str
    microseconds: dict[str, float] = field(default_factory=dict)
    instructions: dict[str, float] = field(default_factory=dict)


def measured(*, against: str, instructions: bool, policy: str, databases: int) -> list[Stages]:
    """Return the figures of this tree, and those of the revision `against` if it is not empty."""
    file = recorded(databases)
    with variants(against) as trees:
        found = {variant.name: Stages(variant.name) for variant in trees}
        for _ in range(_TURNS):
            for variant in trees:
                least = found[variant.name].microseconds
                for run in _json(variant, file, policy)["runs"]:
                    for stage, spent in run.items():
                        least[stage] = min(spent, least.get(stage, spent))
        if instructions:
            for variant in trees:
                stages = list(found[variant.name].microseconds)
                counts = [_counted(variant, file, policy, until) for until in ("", *stages)]
                found[variant.name].instructions = {
                    stage: (counts[at + 1] - counts[at]) / _COUNTED / 1000
                    for at, stage in enumerate(stages)
                }
    return list(found.values())


@contextmanager
def variants(against: str) -> Iterator[list[Variant]]:
    """Yield this tree compiled and pure, and so the revision `against` if it is not empty."""
    with TemporaryDirectory(prefix="mtsd-stages-") as name:
        folder = Path(name)
        register(folder, 0)
        trees = {"": _ROOT}
        if against:
            trees[f" {against}"] = tree = folder / "tree"
            # The packed form that every Python unpacks without a warning.
            archive = folder / "tree.zip"
            command = ["git", "archive", "--output", str(archive), against]
            subprocess.run(command, cwd=_ROOT, check=True)
            unpack_archive(archive, tree)
        found = []
        for number, (label, tree) in enumerate(trees.items()):
            made = folder / f"wheel{number}"
            made.mkdir()
            wheel = build("wheel", tree, made, {**toolchain(), "COMPILE_MTSD": "1"})
            packages = folder / f"packages{number}"
            unpack_archive(wheel, packages, "zip")
            found += [
                Variant(f"compiled{label}", tree, (packages, tree)),
                Variant(f"pure{label}", tree, (tree,)),
            ]
        yield found
        register(folder, None)


def environ(variant: Variant) -> Mapping[str, str]:
    """Return the environment of a process in which `mtsd` is the variant's."""
    paths = os.pathsep.join(map(str, variant.path))
    fixed = {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "0"}
    return {**os.environ, **fixed}


def _command(file: Path, policy: str, *options: object) -> list[str]:
    chosen = [] if policy == DEFAULT_POLICY else ["--policy", policy]
    return [
        sys.executable,
        "-m",
        "benchmarks.processes.stages",
        str(file),
        *chosen,
        *map(str, options),
    ]


def _json(variant: Variant, file: Path, policy: str) -> dict[str, list[dict[str, float]]]:
    done = subprocess.run(
        _command(file, policy, "--runs", _RUNS),
        cwd=variant.tree, env=environ(variant), stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    found: dict[str, list[dict[str, float]]] = json.loads(done.stdout)
    return found


def _counted(variant: Variant, file: Path, policy: str, until: str) -> int:
    """Return the instructions of a whole process that runs up to the stage `until`."""
    options = ("--runs", 1, "--transactions", _COUNTED, "--until", until)
    try:
        done = subprocess.run(
            [*_VALGRIND, *_command(file, policy, *options)],
            cwd=variant.tree, env=environ(variant), capture_output=True, text=True, check=True,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise CountingError("to count instructions, install valgrind") from error
    count = _REFERENCES.search(done.stderr)
    if count is None:
        raise CountingError(f"valgrind has counted nothing: {done.stderr[-500:]}")
    return int(count[1].replace(",", ""))
