"""Keys that must fit each other."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mtsd.config.problems import shown
from mtsd.config.settings import EndpointSettings, Settings


@dataclass(frozen=True, slots=True)
class Conflict:
    """Keys that do not go together; the first of them is the one to report.

    `found` and `allowed` are as in `Problem`.
    """

    keys: tuple[str, ...]
    found: str
    allowed: str


def conflicts(settings: Settings, given: Collection[str]) -> Iterator[Conflict]:
    """Find the keys that do not go together; `given` are those that do not have their default."""
    for section, endpoint in (("source", settings.source), ("target", settings.target)):
        yield from _endpoint_conflicts(section, endpoint, given)
    if settings.replica.split_transactions != "off" and settings.replica.consistency != "eventual":
        yield Conflict(
            ("replica.split_transactions", "replica.consistency"),
            f"found {shown(settings.replica.split_transactions)} together with "
            f"replica.consistency = {shown(settings.replica.consistency)}",
            'allowed with replica.consistency = "eventual" only, for the parts of a transaction '
            "appear one by one",
        )


def _endpoint_conflicts(
    section: str, endpoint: EndpointSettings, given: Collection[str]
) -> Iterator[Conflict]:
    host, socket = f"{section}.host", f"{section}.unix_socket"
    if endpoint.unix_socket is not None and endpoint.host and host in given:
        yield Conflict(
            (socket, host),
            f"found {shown(str(endpoint.unix_socket))} together with {host} = "
            f"{shown(endpoint.host)}",
            'allowed is one of the two, the other left out or ""',
        )
    if endpoint.unix_socket is None and not endpoint.host:
        yield Conflict(
            (host, socket), f'found "", and no {socket} either', "allowed is one of the two"
        )
    password, file = f"{section}.password", f"{section}.password_file"
    if endpoint.password.get_secret_value() and endpoint.password_file is not None:
        yield Conflict(
            (file, password),
            f"found {shown(str(endpoint.password_file))} together with {password}",
            'allowed is one of the two, the other left out or ""',
        )
    cert, key = f"{section}.tls_cert", f"{section}.tls_key"
    if (endpoint.tls_cert is None) != (endpoint.tls_key is None):
        there, missing = (key, cert) if endpoint.tls_cert is None else (cert, key)
        path = endpoint.tls_key if endpoint.tls_cert is None else endpoint.tls_cert
        yield Conflict(
            (there, missing),
            f"found {shown(str(path))} without {missing}",
            "allowed is both or neither",
        )


def ineffective(settings: Settings) -> Iterator[str]:
    """Find settings that protect less than they seem to; a warning for each."""
    for section, endpoint in (("source", settings.source), ("target", settings.target)):
        if endpoint.tls_ca is not None and not endpoint.tls.startswith("verify_"):
            yield (
                f"{section}.tls_ca is not used while {section}.tls is {shown(endpoint.tls)}: "
                f'set "verify_ca" or "verify_identity" to have the server verified'
            )
