"""What a reloaded configuration is refused for, beside what is wrong with it by itself."""

from pathlib import Path

from mtsd.config import ConfigurationError, Loaded, Problem, Settings
from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.command import command
from mtsd.replica.core.endpoints import endpoint
from mtsd.replica.core.limits import distribution_of


def check_no_pipes(file: Path, settings: Settings) -> None:
    """Raise ConfigurationError if a file to be read again is a pipe, as <(…) of a shell makes one.

    What it held has been read: the daemon would stand still until somebody writes to it, or take
    the defaults.
    """
    named = (file, settings.source.password_file, settings.target.password_file)
    problems = tuple(
        Problem(
            str(path), "is a pipe, which is read once, at the start", "restart mtsd", "reloaded"
        )
        for path in dict.fromkeys(named)
        if path is not None and path.is_fifo()
    )
    if problems:
        raise ConfigurationError(problems)


def check_not_emptied(file: Path, before: Loaded, now: Loaded) -> None:
    """Raise ConfigurationError if the file of settings had some and has none any more.

    An editor or a full disk has emptied it. The defaults would have the next connection log in as
    another user, without a password.
    """
    origin = f"file {file}"
    if origin in before.origins.values() and origin not in now.origins.values():
        raise ConfigurationError(
            (
                Problem(
                    str(file), "has no settings any more", "restart mtsd if that is meant", origin
                ),
            )
        )


def check_distribution(settings: Settings) -> None:
    """Raise ConfigurationError if what was set by hand does not go with what has been reloaded."""
    workers = settings.replica.parallel_workers
    allowed = (
        "allowed is what goes together with what `mtsd distribute` has set until the daemon ends;"
        f" `{command('distribute', 'show')}` prints it"
    )
    problems = [
        Problem("replica.bind, pin", f"found that {problem}", allowed, "reloaded")
        for problem in (distribution_of(settings).problems(workers) if workers else ())
    ]
    if problems:
        raise ConfigurationError(tuple(problems))


def check_tls_files(settings: Settings) -> None:
    """Raise ConfigurationError if new connections could not be made with these TLS files."""
    problems = []
    for role, section in (("source", settings.source), ("target", settings.target)):
        try:
            endpoint(role, section)
        except NeedsPersonError as error:
            allowed = "allowed are PEM files that can be read and fit together"
            found = f"found files that cannot be used: {error}"
            keys = f"{role}.tls_ca, tls_cert, tls_key, server_public_key"
            problems.append(Problem(keys, found, allowed, "reloaded"))
    if problems:
        raise ConfigurationError(tuple(problems))
