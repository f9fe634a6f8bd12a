"""Certificates for tests: an authority, and what it signs for servers and clients."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files of a certificate and of its key."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority; its files, and those of what it signs, are in `folder`."""

    def __init__(self, folder: Path, name: str, key: rsa.RSAPrivateKey) -> None:
        self._folder = folder
        self._key = key
        self._name = _subject(f"{name} authority")
        now = dt.datetime.now(dt.UTC)
        built = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 30 * DAY)
            .not_valid_after(now + 30 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.ca = folder / f"{name}-ca.pem"
        self.ca.write_bytes(built.public_bytes(serialization.Encoding.PEM))

    @classmethod
    def new(cls, folder: Path, name: str) -> Self:
        """Make one with a key of its own."""
        return cls(folder, name, _new_key())

    def sign(
        self, name: str, *hosts: str, valid_days: int = 30, passphrase: str = ""
    ) -> Certificate:
        """Return a certificate for these host names and addresses; one of -1 days has expired."""
        key = _new_key()
        now = dt.datetime.now(dt.UTC)
        names = [_general_name(host) for host in hosts]
        builder = (
            x509.CertificateBuilder()
            .subject_name(_subject(name))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 20 * DAY)
            .not_valid_after(now + valid_days * DAY)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        files = Certificate(self._folder / f"{name}-cert.pem", self._folder / f"{name}-key.pem")
        signed = builder.sign(self._key, hashes.SHA256())
        files.cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if passphrase:
            encryption = serialization.BestAvailableEncryption(passphrase.encode())
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            )
        )
        return files


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
