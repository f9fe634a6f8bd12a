"""`mtsd handover`: the server's own replica goes on where mtsd has stopped."""

import argparse
from typing import Final

from mtsd.cli.arguments import Subparsers, load_configuration, seconds, whole
from mtsd.cli.complaint import complain
from mtsd.cli.moves.moving import (
    LONGEST_S,
    account,
    add_account,
    add_moving,
    how_to_move,
    run_move,
)
from mtsd.cli.output import print_line
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.operations.move.handover import OwnReplica, handover

_WATCH_S: Final = 10.0
_EXAMPLE = """\
example:
  systemctl disable --now mtsd
  mtsd handover --config config.toml
  mtsd handover --config config.toml --execute --admin-user root --admin-password-file admin.pw

Without --execute it only looks, and prints every statement that would be sent. With it, mtsd is
fenced off, the target is told what it has, and its own replica is configured from config.toml and
started. If that does not run for --watch seconds without an error, or with Ctrl-C, all is put back,
and mtsd goes on after what it has applied. mtsd has to be stopped before. --admin-user is an
account of the target that may configure and start a replica; it is not kept.
exit status: 0 done; 2 bad usage or configuration; 3 refused, or put back
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "handover",
        description="Let the target's own replica go on where mtsd has stopped.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_moving(parser)
    add_account(parser, "admin", "account of the target that may configure its own replica")
    add_account(
        parser, "replica", "account of the source for the own replica (default: that of mtsd)"
    )
    parser.add_argument(
        "--replica-host",
        default="",
        metavar="HOST",
        help="the source, as the target reaches it (default: [source] host)",
    )
    parser.add_argument(
        "--replica-port",
        type=whole(1, 65535),
        default=0,
        metavar="PORT",
        help="its port (default: [source] port)",
    )
    parser.add_argument(
        "--replica-channel", default="", metavar="NAME", help="its channel (default: without name)"
    )
    parser.add_argument(
        "--watch",
        type=seconds(0, LONGEST_S),
        default=_WATCH_S,
        metavar="SECONDS",
        help="how long it has to run without an error (default: %(default)g)",
    )
    parser.set_defaults(run=_handover)


def _handover(args: argparse.Namespace) -> int:
    settings = load_configuration(args).settings
    admin, how = account(args, "admin"), how_to_move(args, "handover")
    own = OwnReplica(
        account(args, "replica"),
        args.replica_host,
        args.replica_port,
        args.replica_channel,
        args.watch,
    )
    if how.execute and admin is None:
        return complain("--execute needs --admin-user NAME", ExitStatus.BAD_USAGE)
    return run_move(lambda: handover(settings, admin, own, how, print_line), how)
