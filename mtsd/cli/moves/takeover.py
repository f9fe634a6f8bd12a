"""`mtsd takeover`: go on where the server's own replica stops."""

import argparse

from mtsd.cli.arguments import Subparsers, load_configuration
from mtsd.cli.complaint import complain
from mtsd.cli.moves.moving import account, add_account, add_moving, how_to_move, run_move
from mtsd.cli.output import print_line
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.operations.move.takeover import takeover

_EXAMPLE = """\
example:
  mtsd takeover --config config.toml
  mtsd takeover --config config.toml --execute --admin-user root --admin-password-file admin.pw

Without --execute it only looks, and prints every statement that would be sent. With it, the own
replica of the target is stopped, its place becomes mtsd's position, and its configuration is
removed. If something fails, or with Ctrl-C, the own replica is started again as it was. mtsd must
be stopped, and is to be started afterwards. --admin-user is an account of the target that may
STOP, START and RESET REPLICA; it is not kept.
exit status: 0 done; 2 bad usage or configuration; 3 refused, or put back
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "takeover",
        description="Go on where the target's own replica stops.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_moving(parser)
    add_account(parser, "admin", "account of the target that may stop and remove its own replica")
    parser.set_defaults(run=_takeover)


def _takeover(args: argparse.Namespace) -> int:
    settings = load_configuration(args).settings
    admin, how = account(args, "admin"), how_to_move(args, "takeover")
    if how.execute and admin is None:
        return complain("--execute needs --admin-user NAME", ExitStatus.BAD_USAGE)
    return run_move(lambda: takeover(settings, admin, how, print_line), how)
