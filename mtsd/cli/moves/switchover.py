"""`mtsd switchover`: let the application write to the target, with a way back."""

import argparse
import os
import shlex
import shutil
from pathlib import Path
from typing import Final

from mtsd.cli.arguments import (
    Subparsers,
    configuration_file,
    load_configuration,
    named_path,
    seconds,
)
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
from mtsd.config import ConfigurationError, load
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.operations.move.daemons import CONFIG, NAME, DaemonOf, Replication
from mtsd.operations.move.switch_work import SwitchWishes
from mtsd.operations.move.switchover import SwitchAdmins, switchover

_DEFAULTS: Final = SwitchWishes()
_EXAMPLE = """\
example:
  mtsd switchover --config config.toml --reverse-config back.toml
  mtsd switchover --config config.toml --reverse-config back.toml --execute \\
      --admin-source-user root --admin-user root --start "systemctl start mtsd@{name}"
  mtsd switchover --back --config config.toml --reverse-config back.toml --execute ...

The writers go from [source] to [target] of config.toml, and back.toml, which has the two exchanged,
replicates in the other direction from then on: it runs before the application is let in. Without
--execute it only looks. Whatever fails before that is put back: writers stay where they were.
--back is the same in the other direction. --start is the command that starts a daemon: {config} is
its file's path, {name} that file's name without .toml.
exit status: 0 done; 2 bad usage or configuration; 3 refused, or put back
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "switchover",
        description="Let the application write to the target, and replicate back from there.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_moving(parser)
    parser.add_argument(
        "--reverse-config",
        type=named_path,
        required=True,
        metavar="FILE",
        help="settings of the replication in the other direction, from this file alone",
    )
    parser.add_argument("--back", action="store_true", help="switch back")
    parser.add_argument(
        "--start",
        type=_command,
        metavar="COMMAND",
        help="what starts a daemon: see below",
    )
    add_account(parser, "admin-source", "account of [source] that may set read_only")
    add_account(parser, "admin", "account of [target] that may set read_only")
    for name, default, what in (
        ("--max-lag", _DEFAULTS.max_lag, "refuse if replication is further behind"),
        ("--longest", _DEFAULTS.longest, "refuse if a writer has run for longer"),
        ("--grace", _DEFAULTS.grace, "how long open transactions may take to end in the pause"),
    ):
        parser.add_argument(
            name,
            type=seconds(0, LONGEST_S),
            default=default,
            metavar="SECONDS",
            help=f"{what} (default: %(default)g)",
        )
    parser.add_argument("--kill", action="store_true", help="end writers that take longer")
    parser.add_argument(
        "--enable-events", action="store_true", help="enable the events of the new server"
    )
    parser.add_argument(
        "--put-back", action="store_true", help="put back a switch whose command was killed"
    )
    parser.set_defaults(run=_switchover)


def _command(text: str) -> str:
    """Return a command that can be split into words: with --execute, that is done in the pause."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: {error}") from None
    program = words[0] if words else ""
    if not any(each in program for each in (CONFIG, NAME)) and shutil.which(program) is None:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: there is no program {program!r}")
    return text


def _switchover(args: argparse.Namespace) -> int:
    settings = load_configuration(args).settings
    reverse: Path = args.reverse_config
    try:
        # What the environment sets is for the other direction.
        reversed_settings = load(reverse, {}, {}, None).settings
    except ConfigurationError as error:
        for problem in error.problems:
            complain(f"--reverse-config: {problem}", ExitStatus.BAD_USAGE)
        return ExitStatus.BAD_USAGE
    source, target = account(args, "admin-source"), account(args, "admin")
    how = how_to_move(args, "switchover")
    if how.execute and (source is None or target is None or not args.start):
        return complain(
            "--execute needs --admin-source-user, --admin-user and --start", ExitStatus.BAD_USAGE
        )
    wishes = SwitchWishes(
        args.back, args.max_lag, args.longest, args.grace, args.kill, args.enable_events,
        args.put_back,
    )  # fmt: skip
    log = (how.report or Path("mtsd-switchover.txt")).with_suffix(".daemons.log")
    config = configuration_file(args, os.environ).absolute()
    start: str = args.start or ""
    forth = DaemonOf(Replication(settings, config), start, log)
    back = DaemonOf(Replication(reversed_settings, reverse.absolute()), start, log)
    admins = SwitchAdmins(source, target)
    if args.back:
        forth, back, admins = back, forth, SwitchAdmins(target, source)
    return run_move(lambda: switchover(forth, back, admins, wishes, how, print_line), how)
