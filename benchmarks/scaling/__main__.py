"""`python -m benchmarks.scaling`: throughput by workers, databases, format, policy and so on.

Writes docs/scaling.md and its plots. What is measured is recorded at once: a run that was
interrupted goes on where it was with the same `--record`.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Final

from benchmarks.parts import backlog
from benchmarks.replicas import machine, servers
from benchmarks.replicas.external import installed
from benchmarks.replicas.machine import DISTURBED
from benchmarks.replicas.throughput import throughput
from benchmarks.scaling.cells import (
    ANY_POLICY,
    Backlog,
    Cell,
    Measured,
    cells,
    counted,
    efficiency,
)
from benchmarks.scaling.plots import plots
from mtsd.cli import arguments as kinds
from mtsd.schedule.policies.choice import POLICIES
from tests.load import small
from tests.servers.mysqld import Server

_ROOT: Final = Path(__file__).resolve().parents[2]
_WORKERS: Final = (0, 1, 2, 4, 8, 16)
_DATABASES: Final = (1, 4, 16)
_FORMATS: Final = ("ROW", "STATEMENT")
_TRANSACTIONS: Final[Mapping[str, int]] = {"InnoDB": 240_000, "MyISAM": 40_000}
"""By engine, of a backlog: more than is applied while measuring."""
_WRITERS: Final = 16
_SESSION: Final = "SET SESSION transaction_isolation = 'REPEATABLE-READ'"
"""Statements cannot be logged at READ COMMITTED."""
_INTRODUCTION: Final = """# Throughput by workers, databases, format, policy, engine and processors

How fast mtsd applies a backlog, and what workers, databases, policies and processors change about it. You need this page to choose a policy or a machine, or to see what more workers bring. Look at the plots first, and then at the rows of the table that are like your load. To measure your own machine, run `python -m benchmarks.scaling`, which makes this page. To find out about your own load, use [`mtsd plan`](plan.md).

- The load is a backlog of small transactions: an INSERT, an UPDATE, in every third a DELETE. 16 clients have committed them on the source, and they are applied to a durable target.
- Transactions of the source a second are counted over {seconds:g} seconds in the middle of the backlog. Without transactions, on MyISAM, each statement is logged and counted as one.
- *Processors* is how many of them daemon and target run on; the source has all.
- *Efficiency* is the rate for each worker, relative to a single worker of the same policy: 1 if twice the workers apply twice as much. Combined transactions make one worker as fast as several elsewhere, which is why it falls so soon.
- `*`: other processes used more than {disturbed:.0%} of the machine meanwhile.

{processor}, {processors} processors, Python {python}, MySQL {server}.
"""  # noqa: E501


def main() -> int:
    """Measure what is not recorded yet; write the table and the plots."""
    args = arguments()
    found = list(_recorded(args.record))
    known = {one.cell for one in found}
    version = ""
    missing_of = {
        load: [
            cell
            for cell in cells(load, args.cores, args.policies, args.workers)
            if cell not in known
        ]
        for load in _backlogs(args)
    }
    with installed(pure=args.pure) if any(missing_of.values()) else nullcontext():
        for load, missing in missing_of.items():
            if not missing:
                continue
            with loaded_source(load, args.transactions or _TRANSACTIONS[load.engine]) as source:
                version = str(source.sql("SELECT VERSION()")[0][0])
                for cell in missing:
                    one = measured(source, cell, args.seconds, args.warm_up)
                    found.append(one)
                    _record(args.record, one, version)
                    print(f"{cell}: {one.rate:,.0f}", file=sys.stderr)
    version = version or _version(args.record)
    args.into.mkdir(parents=True, exist_ok=True)
    images = plots(found)
    folder = args.into / "scaling"
    folder.mkdir(exist_ok=True)
    for name, image in images.items():
        (folder / name).write_bytes(image)
    text = page(found, list(images), args.seconds, version)
    (args.into / "scaling.md").write_text(text, "utf-8")
    return 0


@contextmanager
def loaded_source(load: Backlog, transactions: int) -> Iterator[Server]:
    """Start a source whose binlog contains the backlog and not a single event more."""
    options = {"default_storage_engine": load.engine, "binlog_format": load.format}
    with servers.source(options) as source:
        backlog.prepare(source, load.databases)
        small.fill(source, transactions, load.databases, _WRITERS, session=_SESSION)
        yield source


def measured(source: Server, cell: Cell, seconds: float, warm_up: float) -> Measured:
    """Measure one cell; daemon and target run on the first of the processors."""
    settings: dict[str, str | int] = {"replica.parallel_workers": cell.workers}
    if cell.policy != ANY_POLICY:
        settings["replica.parallel_type"] = cell.policy
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[: cell.cores])
    try:
        # Both are started by this process, and inherit its processors.
        one = throughput(
            source, cell.backlog.databases, seconds,
            durable=True, settings=settings, engine=cell.backlog.engine, warm_up=warm_up,
        )  # fmt: skip
    finally:
        os.sched_setaffinity(0, every)
    if not one.groups:
        raise RuntimeError(f"{cell}: nothing was left to measure; use more --transactions")
    each = 1 / one.groups
    return Measured(cell, one.rate, one.daemon_cpu * each, one.target_cpu * each, one.load.others)


def page(found: Sequence[Measured], images: Sequence[str], seconds: float, server: str) -> str:
    """Return the document: plots and tables."""
    about = machine.about()
    lines = [
        _INTRODUCTION.format(
            seconds=seconds, disturbed=DISTURBED, processor=about["processor"],
            processors=about["processors"], python=about["python"], server=server,
        )
    ]  # fmt: skip
    lines += [f"![{name}](scaling/{name})" for name in images]
    ordered = sorted(found, key=lambda one: one.cell)
    for (load, cores), part in groupby(ordered, lambda one: (one.cell.backlog, one.cell.cores)):
        lines += _table(load, cores, list(part))
    return "\n".join(lines) + "\n"


def _table(load: Backlog, cores: int, found: Sequence[Measured]) -> Iterable[str]:
    sizes = f"{counted(load.databases, 'database')}, {counted(cores, 'processor')}"
    yield f"\n## {load.engine}, {load.format}, {sizes}\n"
    yield "| policy | workers | transactions/s | efficiency | daemon, µs/trx | target, µs/trx |"
    yield "|---|---|---|---|---|---|"
    for one in found:
        relative = efficiency(one, found)
        share = "" if relative is None else f"{relative:.2f}"
        mark = "*" if one.others > DISTURBED else ""
        yield (
            f"| {one.cell.policy} | {one.cell.workers} | {one.rate:,.0f}{mark} | {share} |"
            f" {one.daemon_cpu * 1e6:.1f} | {one.target_cpu * 1e6:.0f} |"
        )


def _backlogs(args: argparse.Namespace) -> Iterator[Backlog]:
    for engine in args.engines:
        for format_ in args.formats:
            for databases in args.databases:
                yield Backlog(engine, format_, databases)


def _recorded(record: Path) -> Iterator[Measured]:
    if not record.exists():
        return
    for line in record.read_text("utf-8").splitlines():
        document = json.loads(line)
        cell = document.pop("cell")
        del document["server"]
        yield Measured(Cell(Backlog(**cell.pop("backlog")), **cell), **document)


def _version(record: Path) -> str:
    """Return the server's version in what is recorded last."""
    return str(json.loads(record.read_text("utf-8").splitlines()[-1])["server"])


def _record(record: Path, one: Measured, server: str) -> None:
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**asdict(one), "server": server}) + "\n")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; wrong words end the process with status 2."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    count = os.cpu_count() or 1
    parser.add_argument("--workers", type=kinds.whole(0), nargs="+", default=_WORKERS)
    parser.add_argument("--databases", type=kinds.whole(1), nargs="+", default=_DATABASES)
    parser.add_argument("--formats", nargs="+", choices=_FORMATS, default=_FORMATS)
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=tuple(POLICIES))
    parser.add_argument("--engines", nargs="+", choices=_TRANSACTIONS, default=tuple(_TRANSACTIONS))
    cores = [number for number in (1, 2, 4, 8) if number < count]
    parser.add_argument("--cores", type=kinds.whole(1, count), nargs="+", default=[*cores, count])
    parser.add_argument(
        "--seconds", type=kinds.seconds(0.1, 3600), default=4.0, help="that count, of each run"
    )
    parser.add_argument(
        "--warm-up", type=kinds.seconds(0, 3600), default=2.0, help="seconds before these"
    )
    parser.add_argument("--transactions", type=kinds.whole(0), default=0, help="of each backlog")
    parser.add_argument("--pure", action="store_true", help="mtsd without compiled modules")
    parser.add_argument("--record", type=Path, required=True, help="JSON, a line for each run")
    parser.add_argument("--into", type=Path, default=_ROOT / "docs", help="scaling.md and plots")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
