"""The command line of `python -m benchmarks`."""

import argparse
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.parts import cpu, loads
from benchmarks.replicas.kinds import KINDS
from mtsd.cli.arguments import named_path, seconds, whole
from mtsd.schedule.policies.choice import POLICIES

PARTS: Final = (
    "backlog",
    "large",
    "lag",
    "cpu",
    "rows",
    "spark",
    "changes",
    "plan",
    "sql",
    "statements",
    "policies",
    "xa",
    "split",
    "mariadb",
    "stalls",
    "mixed",
    "loads",
    "gtids",
)
DEFAULT_PARTS: Final = PARTS[:3]


def _new_file(text: str) -> Path:
    path = named_path(text)
    if not path.absolute().parent.is_dir():
        # It is written at the end, after minutes or hours.
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; wrong words end the process with status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="mtsd beside the server's own replica, on servers that are started for it.",
        epilog="""\
example:
  python -m benchmarks --part backlog --repeat 3 --markdown
  python -m benchmarks --part lag --rate 5000
  python -m benchmarks --part loads --load "TPC-C" --pure
  python -m benchmarks --part cpu --against HEAD~1

docs/benchmarks.md says how each figure is made.
exit status: 0 done; 1 a figure is missed; 2 bad usage
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument

    def add_one_of(option: str, known: Iterable[str], default: Sequence[str], what: str) -> None:
        names = ", ".join(map(shlex.quote, known))
        add(
            option, nargs="+", choices=known, default=default, metavar="NAME",
            help=f"{what}: {names} (default: {'all' if default == known else ', '.join(default)})",
        )  # fmt: skip

    def add_number(option: str, default: int, what: str) -> None:
        add(
            option, type=whole(1), default=default, metavar="N", help=f"{what} (default: {default})"
        )

    def add_size(option: str, default: float, unit: str, what: str, least: float = 0.001) -> None:
        add(
            option, type=seconds(least, 1e9), default=default, metavar=unit,
            help=f"{what} (default: {default:g})",
        )  # fmt: skip

    add_one_of("--part", PARTS, list(DEFAULT_PARTS), "what is measured")
    add_number("--transactions", 80_000, "of the backlog")
    add_number("--databases", 8, "of the backlog")
    add_number("--workers", 4, "of each replica")
    add_number("--repeat", 1, "pairs of each variant")
    add_size("--size", 1.0, "GB", "of the large transaction")
    add_size("--spark-size", 20.0, "GB", "of the spark part")
    add_size("--rate", 500.0, "N", "transactions/s of the lag part")
    add("--not-durable", action="store_true", help="targets of the lag part")
    add_size(
        "--beside", 0.0, "GB",
        "one transaction that is committed in another database in the lag part", 0.0,
    )  # fmt: skip
    add_size("--seconds", 20.0, "SECONDS", "of the lag part, and of the plan part's runs")
    add_number("--long-backlog", 700_000, "transactions of the plan part")
    add_number("--xa-transactions", 5_000, "of the xa part")
    add_number("--statement-transactions", 20_000, "of the statements part")
    add_size("--statement-size", 64.0, "MB", "of each statement of the stalls part")
    add_number("--mixed-transactions", 3_000, "of the mixed part")
    add_one_of("--load", loads.NAMES, loads.NAMES, "of the loads part")
    add_size("--load-scale", 1.0, "TIMES", "how long the loads are, relative to the usual")
    add_one_of("--load-policies", POLICIES, ("database",), "of the loads part")
    add(
        "--load-server", choices=KINDS, default="9.7",
        help="source and target of the loads and mixed parts: MySQL 9.7, or a MariaDB"
        " (default: 9.7)",
    )  # fmt: skip
    add("--pure", action="store_true", help="mtsd without compiled modules")
    add("--against", default="", metavar="REVISION", help="cpu part: compare with this revision")
    add(
        "--policy", choices=POLICIES, default=cpu.DEFAULT_POLICY,
        help=f"cpu part (default: {cpu.DEFAULT_POLICY})",
    )  # fmt: skip
    add("--instructions", action="store_true", help="cpu part: count them too (needs valgrind)")
    add("--markdown", action="store_true", help="print the README's table as well")
    add("--json", type=_new_file, metavar="FILE", help="write every run there")
    return parser.parse_args(words)
