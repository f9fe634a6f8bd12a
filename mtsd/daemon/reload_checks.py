"""What a reloaded configuration is refused for, beside what is wrong with it by itself."""

from mtsd.config import ConfigurationError, Problem, Settings
from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.command import command
from mtsd.replica.core.endpoints import endpoint
from mtsd.replica.core.limits import distribution_of


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
