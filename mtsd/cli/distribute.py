"""`mtsd distribute`: bind, pin and weigh databases, and freeze workers, of a running daemon."""

import argparse

from mtsd.cli.arguments import (
    Subparsers,
    add_configuration,
    load_configuration,
    named,
    whole,
)
from mtsd.cli.complaint import complain
from mtsd.cli.distribution_lines import described
from mtsd.cli.output import print_line
from mtsd.control.client import (
    NONE_ANSWERS,
    DaemonRefusedError,
    DaemonUnavailableError,
    fetch_status,
    post,
)
from mtsd.control.status import DistributionStatus
from mtsd.model.outcome.exit_status import ExitStatus

_EXAMPLE = """\
example:
  mtsd distribute bind shop stock --config config.toml
  mtsd distribute pin blog 3 --config config.toml
  mtsd distribute freeze 2 --config config.toml
  mtsd distribute show --config config.toml

What is changed here holds until the daemon ends; what is to stay belongs in the configuration.
exit status: 0 done; 1 the daemon does not answer; 2 bad usage or configuration; 3 it refuses;
4 none is running
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "distribute",
        description="Change how a running daemon distributes databases over its workers.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _action(actions, "show", "show what is in force")
    several = _action(actions, "bind", "let databases share one worker queue", " shop stock")
    _databases(several, "+")
    alone = _action(actions, "unbind", "let databases share a queue no longer", " shop")
    _databases(alone, "+")
    pin = _action(actions, "pin", "let one worker apply what updates a database", " shop 2")
    _databases(pin)
    _worker(pin)
    unpin = _action(actions, "unpin", "let any worker apply what updates databases", " shop")
    _databases(unpin, "+")
    weigh = _action(
        actions, "weigh", "say how many others a database counts for, to balance", " shop 5"
    )
    _databases(weigh)
    weigh.add_argument("weight", type=whole(0), metavar="WEIGHT", help="1, the default, to 1000")
    freeze = _action(
        actions, "freeze", "let a worker begin nothing more; what depends on it waits", " 2"
    )
    _worker(freeze)
    _worker(_action(actions, "unfreeze", "let a frozen worker continue", " 2"))


def _action(
    actions: Subparsers, name: str, summary: str, arguments: str = ""
) -> argparse.ArgumentParser:
    action = actions.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  mtsd distribute {name}{arguments} --config config.toml",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_configuration(action)
    action.set_defaults(run=_distribute, do=name)
    return action


def _databases(action: argparse.ArgumentParser, number: int | str = 1) -> None:
    action.add_argument("databases", nargs=number, type=named, metavar="DATABASE")


def _worker(action: argparse.ArgumentParser) -> None:
    action.add_argument("worker", type=whole(0), metavar="WORKER", help="its number, from 1")


def _distribute(args: argparse.Namespace) -> int:
    socket = load_configuration(args).settings.status.socket
    if socket is None:
        return complain("status.socket is empty, so no daemon can be asked", ExitStatus.NOT_RUNNING)
    given = ("databases", "worker", "weight")
    change = {"do": args.do, **{key: getattr(args, key) for key in given if hasattr(args, key)}}
    try:
        if args.do == "show":
            status = fetch_status(socket)
            distribution = status.distribution if status is not None else None
        else:
            answer = post(socket, "/distribute", change)
            distribution = DistributionStatus.from_document(answer) if answer is not None else None
    except DaemonRefusedError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)
    except DaemonUnavailableError as error:
        return complain(error, ExitStatus.FAILED)
    if distribution is None:
        return complain(NONE_ANSWERS.format(socket), ExitStatus.NOT_RUNNING)
    for name, value in described(distribution) or [("distribution", "nothing is set by hand")]:
        print_line(f"{name:<12}  {value}")
    return ExitStatus.DONE
