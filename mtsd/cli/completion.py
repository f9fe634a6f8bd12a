"""`mtsd completion`: what a shell needs to complete commands and options."""

import argparse
from importlib import import_module

from mtsd.cli.arguments import Subparsers
from mtsd.cli.main import COMMANDS, module_of
from mtsd.cli.output import print_line
from mtsd.cli.shells.scripts import SCRIPTS, spots_of
from mtsd.model.outcome.exit_status import ExitStatus

_EXAMPLE = """\
example:
  mtsd completion bash > ~/.local/share/bash-completion/completions/mtsd
  mtsd completion zsh > ~/.zfunc/_mtsd          (with fpath+=~/.zfunc before compinit)
  mtsd completion fish > ~/.config/fish/completions/mtsd.fish

For everybody on the machine: /usr/share/bash-completion/completions/mtsd,
/usr/share/zsh/site-functions/_mtsd, /usr/share/fish/vendor_completions.d/mtsd.fish. Write it again
after an upgrade.
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "completion",
        description="Print the script by which a shell completes commands and options.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help=", ".join(SCRIPTS))
    parser.set_defaults(run=_completion)


def _completion(args: argparse.Namespace) -> int:
    for line in SCRIPTS[args.shell](list(spots_of(whole_parser(), ("mtsd",)))).splitlines():
        print_line(line)
    return ExitStatus.DONE


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with all commands, of which a run registers only its own."""
    parser = argparse.ArgumentParser(prog="mtsd")
    parser.add_argument("--version", action="version", version="")
    subparsers = parser.add_subparsers()
    for command in COMMANDS:
        import_module(module_of(command)).register(subparsers)
    return parser
