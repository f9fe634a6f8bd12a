"""How a command line is read: what is wrong with it is told on one line."""

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import NoReturn

from mtsd.cli.complaint import complain
from mtsd.model.outcome.exit_status import ExitStatus


class CommandParser(argparse.ArgumentParser):
    """Reads the words of a command, and those of the commands below it.

    An option is never abbreviated: what a script means by `--back` must stay what it means when an
    option is added.
    """

    def parse_known_args(  # type: ignore[override]  # the namespace is never one of our own
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Read words; one that nothing takes is refused here, by the command that it was for."""
        self.allow_abbrev = False
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            words = " ".join(unknown)
            option = unknown[0].partition("=")[0]
            near = did_you_mean(option, self._option_string_actions)
            self.error(f"unrecognized arguments: {words}{near}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Write what is wrong to standard error, and raise SystemExit with status 2."""
        raise SystemExit(complain(f"{message}; see {self.prog} --help", ExitStatus.BAD_USAGE))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean X?" for the known word that is most like this one, else "".

    >>> did_you_mean("statsu", ["run", "status"])
    '; did you mean status?'
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
