"""`python -m benchmarks`: every figure of docs/benchmarks.md, in one run."""

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks import backlog, figures, lag, large, report
from benchmarks.backlog import Applied
from benchmarks.external import installed
from benchmarks.figures import Figure
from benchmarks.lag import Lag

PARTS: Final = ("backlog", "large", "lag")
DURABLE: Final = "durable"
NOT_DURABLE: Final = "not durable"
UNCOMBINED: Final = "durable, batch_groups = 1"
LARGE: Final = "durable, one transaction"


@dataclass(slots=True)
class Results:
    """What has been measured so far."""

    applied: dict[str, list[Applied]] = field(default_factory=dict)
    lags: list[Lag] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def add(self, variant: str, run: Applied) -> Applied:
        """Keep a run and tell of it."""
        self.applied.setdefault(variant, []).append(run)
        print(f"{variant}: {run.replica}: {run.seconds:.2f} s", file=sys.stderr)
        return run


def main() -> int:
    """Run the parts that are asked for; 1 where a figure is missed."""
    args = _arguments()
    results = Results()
    about = {**report.machine(), **{name: str(value) for name, value in vars(args).items()}}
    print(report.settings_list("This run", about))
    with installed(pure=args.pure):
        if "backlog" in args.part:
            _backlog(args, results)
        if "large" in args.part:
            _large(args, results)
        if "lag" in args.part:
            _lag(args, results)
    print(report.figures_list(results.figures))
    if args.json:
        text = report.as_json(about, results.applied, results.lags, results.figures)
        args.json.write_text(text, "utf-8")
    return 0 if all(figure.met for figure in results.figures) else 1


def _backlog(args: argparse.Namespace, results: Results) -> None:
    load = (args.transactions, args.databases, args.workers)
    peers: dict[str, list[Applied]] = {DURABLE: [], NOT_DURABLE: []}
    ours: dict[str, list[Applied]] = {DURABLE: [], NOT_DURABLE: [], UNCOMBINED: []}
    with backlog.loaded_source(args.transactions, args.databases) as source:
        for _ in range(args.repeat):
            for variant, durable in ((DURABLE, True), (NOT_DURABLE, False)):
                peer = backlog.native(source, *load, durable=durable)
                peers[variant].append(results.add(variant, peer))
                run = backlog.external(source, *load, durable=durable)
                ours[variant].append(results.add(variant, run))
            single = {"replica.batch_groups": 1}
            run = backlog.external(source, *load, durable=True, settings=single)
            ours[UNCOMBINED].append(results.add(UNCOMBINED, run))
    title = f"Backlog: {args.transactions:,} transactions over {args.databases} databases"
    print(report.applied_table(title, results.applied))
    _print_settings(peers[DURABLE][0], ours[DURABLE][0])
    for variant, peer_variant, least in (
        (DURABLE, DURABLE, 8),
        (NOT_DURABLE, NOT_DURABLE, 5),
        (UNCOMBINED, DURABLE, 0.8),
    ):
        figure = figures.ratio(variant, least, peers[peer_variant], ours[variant])
        results.figures.append(figure)
    every = [run for runs in ours.values() for run in runs]
    results.figures.append(figures.memory("backlog", 200, every))


def _large(args: argparse.Namespace, results: Results) -> None:
    size = int(args.size * 1e9)
    ours: list[Applied] = []
    for _ in range(args.repeat):
        peer, run = large.run(size, args.workers)
        results.add(LARGE, peer)
        ours.append(results.add(LARGE, run))
    title = f"Large: {args.size:g} GB of binlog"
    print(report.applied_table(title, {LARGE: results.applied[LARGE]}))
    results.figures.append(figures.memory("large", 250, ours))


def _lag(args: argparse.Namespace, results: Results) -> None:
    peers: list[Lag] = []
    ours: list[Lag] = []
    for _ in range(args.repeat):
        peer, run = lag.run(args.rate, args.seconds, args.databases, args.workers)
        peers.append(peer)
        ours.append(run)
        results.lags += [peer, run]
    title = f"Lag: {args.rate:g} transactions/s over {args.databases} databases, durable targets"
    print(report.lag_table(title, results.lags))
    results.figures += [figures.lag("p50", 5, peers, ours), figures.lag("p99", 2, peers, ours)]


def _print_settings(peer: Applied, run: Applied) -> None:
    print(report.settings_list(f"Settings of the target of {peer.replica} replica", peer.settings))
    print(report.settings_list("Settings of mtsd, all others at their defaults", run.settings))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="mtsd beside the server's own replica. Exit status 1: a figure is missed.",
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--transactions", type=int, default=80_000, help="of the backlog")
    parser.add_argument("--databases", type=int, default=8)
    parser.add_argument("--workers", type=int, default=4, help="of each replica")
    parser.add_argument("--repeat", type=int, default=1, help="times; figures are of the medians")
    parser.add_argument("--size", type=float, default=1.0, help="GB of the large transaction")
    parser.add_argument("--rate", type=float, default=500.0, help="transactions/s of the lag part")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the lag part")
    parser.add_argument("--pure", action="store_true", help="mtsd without compiled modules")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
