"""`mtsd config show`: the settings in force and where each comes from, secrets hidden."""

import argparse
from collections.abc import Iterator

from mtsd.cli.arguments import Subparsers, add_configuration, load_configuration
from mtsd.cli.output import json_of, print_json, print_line
from mtsd.config import FIELDS, Loaded, document, is_secret, shown
from mtsd.model.outcome.exit_status import ExitStatus

NOT_SET = "(not set)"

_EXAMPLE = """\
example:
  mtsd config show --config /etc/mtsd/config.toml
  mtsd config show --config config.toml --set replica.parallel_workers=8 --json
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "config",
        description="Show the configuration.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="config_command", required=True, metavar="COMMAND")
    show = commands.add_parser(
        "show",
        help="the settings in force and where each comes from",
        description="Show the settings in force and where each comes from, secrets hidden.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(show)
    show.add_argument("--json", action="store_true", help="print a JSON object of all keys")
    show.set_defaults(run=_show)


def _show(args: argparse.Namespace) -> int:
    loaded = load_configuration(args)
    if args.json:
        entries = {
            key: {"value": value, "origin": loaded.origins[key]} for key, value in _values(loaded)
        }
        print_json(json_of(entries, indent=2))
        return ExitStatus.DONE
    rows = [
        (key, str(value) if is_secret(FIELDS[key]) else shown(value, None), loaded.origins[key])
        for key, value in _values(loaded)
    ]
    key_width = max(len(key) for key, _, _ in rows)
    # One long path must not push the origins off the terminal.
    value_width = min(30, max(len(value) for _, value, _ in rows))
    for key, value, origin in rows:
        print_line(f"{key:<{key_width}}  {value:<{value_width}}  {origin}")
    return ExitStatus.DONE


def _values(loaded: Loaded) -> Iterator[tuple[str, object]]:
    """Yield every key's value in JSON types, `HIDDEN` or `NOT_SET` for secrets."""
    for key, value in document(loaded.settings).items():
        yield key, (value or NOT_SET) if is_secret(FIELDS[key]) else value
