"""`mtsd run`: the daemon, in the foreground."""

import argparse
import gc
import os
from collections.abc import Callable

import uvloop

from mtsd.cli.arguments import (
    Subparsers,
    add_configuration,
    configuration_file,
    load_configuration,
    read_configuration,
)
from mtsd.config import Loaded
from mtsd.daemon import signals
from mtsd.daemon.life import Daemon
from mtsd.daemon.logging import set_up_logging
from mtsd.daemon.memory import keep_freed_memory, memory_given_back
from mtsd.daemon.reload_checks import check_no_pipes, check_not_emptied
from mtsd.model.until import (
    Until,
    UntilAfterGtids,
    UntilBeforeGtids,
    UntilGapsFilled,
    UntilPosition,
    parse_gtids,
)

_EXAMPLE = """\
example:
  mtsd run --config /etc/mtsd/config.toml

exit status: 0 stopped gracefully, or where --until-… says, 1 unexpected failure, 2 bad usage or
configuration, 3 replication stopped on an error that needs a person
"""


_GC_THRESHOLD = 200_000


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "run",
        description="Replicate from the source to the target until SIGTERM or SIGINT."
        " SIGHUP reloads the configuration.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(parser)
    parser.add_argument(
        "--standby",
        action="store_true",
        help="wait while the channel is handed over (mtsd switchover), instead of refusing",
    )
    _add_until(parser)
    parser.set_defaults(run=run)


def _add_until(parser: argparse.ArgumentParser) -> None:
    until = parser.add_argument_group(
        "where to stop by itself", "as with START REPLICA UNTIL; the exit status is 0"
    ).add_mutually_exclusive_group()
    until.add_argument(
        "--until-position",
        type=_parsed(UntilPosition.parse),
        dest="until",
        metavar="FILE:POS",
        help="before the first transaction that begins at or after this place in the source's"
        " binary log",
    )
    until.add_argument(
        "--until-before-gtids",
        type=_parsed(lambda text: UntilBeforeGtids(parse_gtids(text))),
        dest="until",
        metavar="SET",
        help="before the first transaction that is in this GTID set",
    )
    until.add_argument(
        "--until-after-gtids",
        type=_parsed(lambda text: UntilAfterGtids(parse_gtids(text))),
        dest="until",
        metavar="SET",
        help="once all transactions of this GTID set are applied",
    )
    until.add_argument(
        "--until-gaps-filled",
        action="store_const",
        const=UntilGapsFilled(),
        dest="until",
        help="once no transaction is missing before one that a previous run has applied",
    )


def _parsed(parse: Callable[[str], Until]) -> Callable[[str], Until]:
    def parsed(text: str) -> Until:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text[:80]!r}: {error}") from None

    return parsed


def _read_again(args: argparse.Namespace, first: Loaded) -> Loaded:
    """Load as at the `first` time; raises ConfigurationError."""
    file = configuration_file(args, os.environ)
    check_no_pipes(file, first.settings)
    loaded = read_configuration(args)
    check_not_emptied(file, first, loaded)
    return loaded


def run(args: argparse.Namespace) -> int:
    """Run the daemon and return its exit status."""
    first = load_configuration(args)
    settings = first.settings
    set_up_logging(settings.log)

    # Groups are many and form no cycles: searching them for cycles takes a fifth of the time.
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 50, 100)
    keep_freed_memory()

    async def live() -> int:
        try:
            async with memory_given_back():
                return await Daemon(
                    settings,
                    os.environ,
                    lambda: _read_again(args, first),
                    until=args.until,
                    standby=args.standby,
                ).run()
        finally:
            # The event loop resets the signals to their defaults, but the exit status is decided.
            signals.hold()

    return uvloop.run(live())
