"""`python -m benchmarks`: every figure of docs/benchmarks.md, in one run."""

import argparse
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from benchmarks import figures, report
from benchmarks.arguments import arguments
from benchmarks.figures import Figure, Range
from benchmarks.parts import (
    backlog,
    changes,
    copies,
    cpu,
    families,
    kept_gtids,
    lag,
    large,
    loads,
    mixed,
    policies,
    rows,
    spark,
    stalls,
)
from benchmarks.parts.cpu import Stages
from benchmarks.parts.lag import Lag
from benchmarks.replicas import machine
from benchmarks.replicas.external import installed
from benchmarks.replicas.kinds import KINDS
from benchmarks.replicas.runs import Applied, Pair

DURABLE: Final = "durable"
NOT_DURABLE: Final = "not durable"
UNCOMBINED: Final = "durable, batch_groups = 1"
LARGE: Final = "durable, one transaction"
SPLIT: Final = "durable, one transaction, split"
MIXED: Final = "mixed, durable"
MIXED_NOT_DURABLE: Final = "mixed, not durable"
AS_SQL: Final = "as SQL, durable"
AS_SQL_NOT_DURABLE: Final = "as SQL, not durable"


@dataclass(slots=True)
class Results:
    """What has been measured so far, by variant if there are several."""

    pairs: dict[str, list[Pair]] = field(default_factory=dict)
    large: list[Pair] = field(default_factory=list)
    lags: list[tuple[Lag, Lag]] = field(default_factory=list)
    stages: list[Stages] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def add(self, variant: str, pair: Pair) -> Pair:
        """Add a pair of runs over a backlog, and print it."""
        self.pairs.setdefault(variant, []).append(pair)
        _tell(variant, pair)
        return pair


def main() -> int:
    """Run the requested parts; return 1 if a figure is missed."""
    args = arguments()
    results = Results()
    about = {**machine.about(), **{name: str(value) for name, value in vars(args).items()}}
    print(report.settings_list("This run", about), flush=True)
    if "cpu" in args.part:
        _cpu(args, results)
    if "rows" in args.part:
        decoded = rows.measured()
        print(rows.table(decoded))
        results.figures += rows.figures(decoded)
    if "spark" in args.part:
        through = spark.measured(args.spark_size)
        print(spark.table(through))
        results.figures += spark.figures(through)
    if "changes" in args.part:
        read = changes.measured()
        print(changes.table(read))
        results.figures += changes.figures(read)
    if "plan" in args.part:
        _plan(args, results)
    measures = {"backlog": _backlog, "large": _large, "lag": _lag, "sql": _sql}
    measures["statements"] = _statements
    measures["policies"] = _policies
    measures["xa"] = _xa
    measures["split"] = _split
    measures["mariadb"] = _mariadb
    measures["stalls"] = _stalls
    measures["mixed"] = _mixed
    measures["loads"] = _loads
    if "gtids" in args.part:
        print(kept_gtids.table(kept_gtids.measured(), kept_gtids.left_between()))
    if parts := [part for part in measures if part in args.part]:
        with installed(pure=args.pure):
            for part in parts:
                measures[part](args, results)
    if results.figures:
        print(report.figures_list(results.figures))
    if args.markdown:
        print(report.markdown(about, results.pairs, results.large, results.lags))
    if args.json:
        pairs = {**results.pairs, LARGE: results.large}
        text = report.as_json(about, pairs, results.lags, results.stages, results.figures)
        args.json.write_text(text, "utf-8")
    return 0 if all(figure.met for figure in results.figures) else 1


def _backlog(args: argparse.Namespace, results: Results) -> None:
    load = (args.transactions, args.databases, args.workers)
    with backlog.loaded_source(args.transactions, args.databases) as source:
        for number in range(args.repeat):
            # Whichever runs first finds the machine as the previous run has left it.
            order = number % 2 == 0
            pair = results.add(
                DURABLE, backlog.pair(source, *load, durable=True, native_first=order)
            )
            single = backlog.external(
                source, *load, durable=True, settings={"replica.batch_groups": 1}
            )
            results.add(UNCOMBINED, Pair(pair.native, single))
            pair = backlog.pair(source, *load, durable=False, native_first=order)
            results.add(NOT_DURABLE, pair)
    title = f"Backlog: {args.transactions:,} transactions over {args.databases} databases"
    print(report.applied_table(title, _runs(results.pairs)))
    print(report.pairs_table(title, results.pairs))
    first = results.pairs[DURABLE][0]
    _print_settings(first.native, first.mtsd)
    results.figures += [
        figures.ratio(DURABLE, 8, results.pairs[DURABLE]),
        figures.ratio(NOT_DURABLE, 5, results.pairs[NOT_DURABLE]),
        figures.ratio(UNCOMBINED, 0.8, results.pairs[UNCOMBINED]),
        figures.memory(
            "backlog", 200, [pair.mtsd for pair in chain.from_iterable(results.pairs.values())]
        ),
    ]


def _sql(args: argparse.Namespace, results: Results) -> None:
    load = (args.transactions, args.databases, args.workers)
    variants = {AS_SQL: True, AS_SQL_NOT_DURABLE: False}
    with backlog.loaded_source(args.transactions, args.databases) as source:
        for _ in range(args.repeat):
            for variant, durable in variants.items():
                peer = backlog.native(source, *load, durable=durable)
                run = backlog.external(
                    source, *load, durable=durable, settings={"target.apply_mode": "sql"}
                )
                results.add(variant, Pair(peer, run))
    for _ in range(args.repeat):
        for variant, durable in variants.items():
            for name, pair in loads.as_sql(args.workers, durable=durable).items():
                results.add(f"{name} {variant}", pair)
    pairs = {name: found for name, found in results.pairs.items() if "as SQL" in name}
    title = f"As SQL: {args.transactions:,} transactions over {args.databases} databases"
    print(report.applied_table(title, _runs(pairs)))
    print(report.pairs_table(title, pairs))
    results.figures += [figures.ratio(variant, 1, found) for variant, found in pairs.items()]


def _policies(args: argparse.Namespace, results: Results) -> None:
    found = policies.measured(args.transactions, args.workers, args.repeat)
    for title, runs in policies.tables(found):
        print(report.applied_table(title, runs))
    results.figures += policies.figures(found)


def _xa(args: argparse.Namespace, results: Results) -> None:
    loads = [
        families.FamilyLoad(family, args.xa_transactions, databases, parallel_type)
        for family, databases, parallel_type in (
            (families.MYSQL, args.databases, "database"),
            (families.MYSQL, 1, "logical_clock"),
            (families.MARIADB, args.databases, "database"),
            (families.MARIADB, 1, "commit_parent"),
        )
    ]
    for load in loads:
        with families.loaded_source(load) as source:
            for number in range(args.repeat):
                order = {"native_first": number % 2 == 0}
                results.add(load.name, families.pair(source, load, args.workers, **order))
    pairs = {load.name: results.pairs[load.name] for load in loads}
    title = f"XA: {args.xa_transactions:,} transactions, prepared and committed, durable targets"
    print(report.applied_table(title, _runs(pairs)))
    print(report.pairs_table(title, pairs))
    results.figures += [figures.ratio(name, 1, found) for name, found in pairs.items()]


def _mariadb(args: argparse.Namespace, results: Results) -> None:
    loads = [
        families.FamilyLoad(families.MARIADB, args.transactions, databases, parallel_type, xa=False)
        for databases, parallel_type in (
            (args.databases, "database"),
            *((1, name) for name in ("commit_parent", "row")),
        )
    ]
    with ExitStack() as stack:
        # All loads in each round: a machine is not as fast all the time.
        eight_databases = stack.enter_context(families.loaded_source(loads[0]))
        one_database = stack.enter_context(families.loaded_source(loads[1]))
        for number in range(args.repeat):
            order = {"native_first": number % 2 == 0}
            for load in loads:
                source = eight_databases if load is loads[0] else one_database
                results.add(load.name, families.pair(source, load, args.workers, **order))
    pairs = {load.name: results.pairs[load.name] for load in loads}
    title = f"MariaDB: {args.transactions:,} transactions, durable targets"
    print(report.applied_table(title, _runs(pairs)))
    print(report.pairs_table(title, pairs))
    eight, *one = ([pair.mtsd.rate for pair in results.pairs[load.name]] for load in loads)
    for load, rates in zip(loads[1:], one, strict=True):
        ratios = Range.of(mine / its for mine, its in zip(rates, eight, strict=True))
        name = f"{load.name} / {loads[0].name}"
        results.figures.append(Figure(name, ratios, 0.85, at_most=False, unit=" times"))


def _stalls(args: argparse.Namespace, results: Results) -> None:
    size = int(args.statement_size * 1e6)
    found = stalls.measured(size, args.workers)
    print(stalls.table(found, size))
    results.figures += stalls.figures(found)


def _mixed(args: argparse.Namespace, results: Results) -> None:
    with mixed.loaded_source(args.mixed_transactions, KINDS[args.load_server]) as load:
        for _ in range(args.repeat):
            for variant, durable in ((MIXED, True), (MIXED_NOT_DURABLE, False)):
                results.add(variant, load.pair(args.workers, durable=durable))
    title = f"Mixed: {load.transactions:,} transactions, definitions among them"
    pairs = {variant: results.pairs[variant] for variant in (MIXED, MIXED_NOT_DURABLE)}
    print(report.applied_table(title, _runs(pairs)))
    print(report.pairs_table(title, pairs))
    print(copies.table(pairs))
    results.figures += [figures.ratio(variant, 1, row) for variant, row in pairs.items()]


def _loads(args: argparse.Namespace, results: Results) -> None:
    found = loads.measured(
        args.load,
        args.workers,
        args.repeat,
        scale=args.load_scale,
        policies=args.load_policies,
        kind=KINDS[args.load_server],
    )
    print(loads.table(found))
    results.figures += loads.figures(found)
    results.pairs.update(loads.pairs(found))


def _runs(pairs: dict[str, list[Pair]]) -> dict[str, list[Applied]]:
    """Return the runs of each variant without repetition: one may be in pairs of two variants."""
    told: set[int] = set()
    runs: dict[str, list[Applied]] = {}
    for variant, row in pairs.items():
        both = chain.from_iterable((pair.native, pair.mtsd) for pair in row)
        runs[variant] = [run for run in both if id(run) not in told]
        told.update(map(id, runs[variant]))
    return runs


def _large(args: argparse.Namespace, results: Results) -> None:
    size = int(args.size * 1e9)
    for number in range(args.repeat):
        pair = large.run(size, args.workers, native_first=number % 2 == 0)
        results.large.append(pair)
        _tell(LARGE, pair)
    title = f"Large: {args.size:g} GB of binlog"
    print(report.applied_table(title, _runs({LARGE: results.large})))
    results.figures.append(figures.memory("large", 250, [pair.mtsd for pair in results.large]))


def _split(args: argparse.Namespace, results: Results) -> None:
    size = int(args.size * 1e9)
    for number in range(args.repeat):
        first = number % 2 == 0
        pair = large.run(size, args.workers, native_first=first, settings=large.SPLIT)
        results.add(SPLIT, pair)
    title = f"Split: {args.size:g} GB of binlog in one transaction, {args.workers} workers"
    pairs = results.pairs[SPLIT]
    print(report.applied_table(title, _runs({SPLIT: pairs})))
    results.figures.append(figures.ratio(SPLIT, 1.5, pairs))
    results.figures.append(figures.memory("split", 300, [pair.mtsd for pair in pairs]))


def _statements(args: argparse.Namespace, results: Results) -> None:
    count = args.statement_transactions
    variants = {f"statements, {each} databases": each for each in (8, 1)}
    for variant, databases in variants.items():
        load = (count, databases, args.workers)
        with backlog.loaded_source(count, databases, statements=True) as source:
            for number in range(args.repeat):
                first = number % 2 == 0
                results.add(variant, backlog.pair(source, *load, durable=True, native_first=first))
    pairs = {variant: results.pairs[variant] for variant in variants}
    title = f"Statements: {count:,} transactions, durable targets"
    print(report.applied_table(title, _runs(pairs)))
    print(report.pairs_table(title, pairs))
    results.figures += [figures.ratio(variant, 1, row) for variant, row in pairs.items()]


def _lag(args: argparse.Namespace, results: Results) -> None:
    for _ in range(args.repeat):
        load = (args.rate, args.seconds, args.databases, args.workers)
        results.lags.append(
            lag.run(*load, durable=not args.not_durable, large=int(args.beside * 10**9))
        )
    targets = "targets that are not durable" if args.not_durable else "durable targets"
    title = f"Lag: {args.rate:g} transactions/s over {args.databases} databases, {targets}"
    print(report.lag_table(title, list(chain.from_iterable(results.lags))))
    native, mtsd = zip(*results.lags, strict=True)
    results.figures += [figures.lag("p50", 1.25, native, mtsd), figures.lag("p99", 2, native, mtsd)]


def _cpu(args: argparse.Namespace, results: Results) -> None:
    results.stages += cpu.measured(
        against=args.against,
        instructions=args.instructions,
        policy=args.policy,
        databases=args.databases,
    )
    title = f"What a small transaction costs the daemon, policy {args.policy}"
    print(report.stages_table(title, results.stages))


def _plan(args: argparse.Namespace, results: Results) -> None:
    # The other parts need no extra.
    from benchmarks.parts import planning  # noqa: PLC0415

    recordings = planning.recording_rates()
    with installed(pure=args.pure):
        found = planning.predictions(args.long_backlog, args.databases, args.seconds, args.repeat)
    print(planning.table(recordings, found))
    results.figures += planning.figures(recordings, found)


def _tell(variant: str, pair: Pair) -> None:
    disturbed = ", disturbed" if pair.disturbed else ""
    print(
        f"{variant}: the server's own {pair.native.seconds:.2f} s, mtsd {pair.mtsd.seconds:.2f} s"
        f"{disturbed}",
        file=sys.stderr,
    )


def _print_settings(peer: Applied, run: Applied) -> None:
    print(report.settings_list(f"Settings of the target of {peer.replica} replica", peer.settings))
    print(report.settings_list("Settings of mtsd, all others at their defaults", run.settings))


if __name__ == "__main__":
    sys.exit(main())
