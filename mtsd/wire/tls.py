"""TLS to a server, by the mode of its `tls` setting, and the public key that may replace it."""

import ssl
from pathlib import Path

from cryptography.hazmat.primitives.serialization import load_pem_public_key

from mtsd.model.errors import NeedsPersonError

REQUIRING = frozenset({"required", "verify_ca", "verify_identity"})
"""Modes in which a connection that the server does not encrypt is refused."""
_LONGEST_KEY = 1 << 20
_NO_KEY = "contains no public key in PEM format: it is the server's public_key.pem"


def tls_context(
    role: str, mode: str, *, ca: Path | None, cert: Path | None, key: Path | None
) -> ssl.SSLContext | None:
    """Return the context for a mode; None if disabled.

    Raises NeedsPersonError if a file is unusable; `role` is the section that names it.
    """
    if mode == "disabled":
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = mode == "verify_identity"
    if mode in {"verify_ca", "verify_identity"}:
        _trust(context, role, ca)
    else:
        context.verify_mode = ssl.CERT_NONE
    if cert and key:
        _show(context, role, cert, key)
    return context


def public_key(role: str, file: Path | None) -> bytes:
    """Return the RSA public key in a file, in PEM format; b"" if there is none.

    Raises NeedsPersonError if the file is unusable; `role` is the section that names it.
    """
    if file is None:
        return b""
    try:
        with file.open("rb") as opened:
            # A device such as /dev/zero has no end.
            key = opened.read(_LONGEST_KEY)
        load_pem_public_key(key)
    except (OSError, ValueError) as error:
        reason = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else _NO_KEY
        raise NeedsPersonError(f"[{role}] server_public_key = {str(file)!r} {reason}") from error
    return key


def _trust(context: ssl.SSLContext, role: str, ca: Path | None) -> None:
    if ca is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(str(ca))
    except OSError as error:
        raise NeedsPersonError(
            f"[{role}] tls_ca = {str(ca)!r} {_fault(error, 'certificate of a CA')}"
        ) from error


def _show(context: ssl.SSLContext, role: str, cert: Path, key: Path) -> None:
    def no_passphrase() -> str:
        raise NeedsPersonError(
            f"[{role}] tls_key = {str(key)!r} is encrypted: store it without a passphrase"
        )

    try:
        context.load_cert_chain(str(cert), str(key), no_passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise NeedsPersonError(
                f"[{role}] tls_key = {str(key)!r} is not the key of tls_cert = {str(cert)!r}"
            ) from error
        raise NeedsPersonError(
            f"[{role}] tls_cert = {str(cert)!r} or tls_key = {str(key)!r} "
            + _fault(error, "certificate, or key")
        ) from error
    except OSError as error:
        raise NeedsPersonError(
            f"[{role}] tls_cert = {str(cert)!r} or tls_key = {str(key)!r} "
            + _fault(error, "certificate, or key")
        ) from error


def _fault(error: OSError, wanted: str) -> str:
    if isinstance(error, ssl.SSLError):
        return f"contains no {wanted} in PEM format ({error.reason or error})"
    return f"cannot be read: {error.strerror}"
