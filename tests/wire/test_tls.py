"""TLS to a real server: every mode with every certificate, and certificates of clients."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
import uvloop
from pydantic import SecretStr

from mtsd.config.settings import SourceSettings, TargetSettings, Tls
from mtsd.model.errors import ConnectionLostError, NeedsPersonError
from mtsd.replica.core.endpoints import endpoint
from mtsd.wire.connection import Connection
from tests.servers.certificates import Authority, Certificate
from tests.servers.mysqld import Server

pytestmark = pytest.mark.servers

Offer = Literal["good", "wrong_ca", "other_name", "expired", "none"]
ENCRYPTED, CLEAR = "encrypted", "clear"
MODES: tuple[Tls, ...] = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
NO_TLS = "offers no TLS"
UNTRUSTED = "is not signed by a CA in [source] tls_ca"
EXPIRED = "the source's certificate has expired"
OTHER_NAME = "the source's certificate is not for '127.0.0.1'"

OUTCOMES: dict[Offer, tuple[str, ...]] = {
    "good": (CLEAR, ENCRYPTED, ENCRYPTED, ENCRYPTED, ENCRYPTED),
    "wrong_ca": (CLEAR, ENCRYPTED, ENCRYPTED, UNTRUSTED, UNTRUSTED),
    "other_name": (CLEAR, ENCRYPTED, ENCRYPTED, ENCRYPTED, OTHER_NAME),
    "expired": (CLEAR, ENCRYPTED, ENCRYPTED, EXPIRED, EXPIRED),
    "none": (CLEAR, CLEAR, NO_TLS, NO_TLS, NO_TLS),
}
"""What a client that trusts the good authority gets in each of MODES."""


@dataclass(frozen=True, slots=True)
class Secure:
    """A server that shows each certificate, or none, and everything signed for them.

    `plain` offers no TLS, `late` has a certificate that has expired; both are for good. A running
    server refuses to change to such a certificate.
    """

    server: Server
    late: Server
    plain: Server
    folder: Path
    authority: Authority
    other: Authority
    offers: dict[Offer, Certificate]

    def offering(self, offer: Offer) -> Server:
        """Return a server that shows this."""
        if offer == "none":
            return self.plain
        if offer == "expired":
            return self.late
        shown = self.offers[offer]
        signer = self.other if offer == "wrong_ca" else self.authority
        self.server.sql(
            f"SET GLOBAL ssl_ca = '{signer.ca}'; SET GLOBAL ssl_cert = '{shown.cert}';"
            f" SET GLOBAL ssl_key = '{shown.key}'; ALTER INSTANCE RELOAD TLS"
        )
        return self.server


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("certificates")
    ours, other = Authority.new(folder, "our"), Authority.new(folder, "other")
    offers: dict[Offer, Certificate] = {
        "good": ours.sign("good", "127.0.0.1", "localhost"),
        "wrong_ca": other.sign("wrong", "127.0.0.1", "localhost"),
        "other_name": ours.sign("elsewhere", "db.example"),
    }
    expired = ours.sign("expired", "127.0.0.1", "localhost", valid_days=-1)
    late_options = {
        "ssl_ca": str(ours.ca), "ssl_cert": str(expired.cert), "ssl_key": str(expired.key),
    }  # fmt: skip
    servers = (Server(), Server(late_options), Server({"tls_version": ""}))
    try:
        for server in servers:
            server.spawn()
        for server in servers:
            server.wait_ready()
        servers[0].sql(
            "CREATE USER cert@'%' IDENTIFIED BY 'p' REQUIRE X509;"
            "CREATE USER tls@'%' IDENTIFIED BY 'p' REQUIRE SSL"
        )
        yield Secure(*servers, folder, ours, other, offers)
    finally:
        for server in servers:
            server.close()


async def outcome(settings: SourceSettings | TargetSettings) -> str:
    """Return whether there is a connection, and of which kind, or the error."""
    role = "source" if isinstance(settings, SourceSettings) else "target"
    try:
        connection = await Connection.open(endpoint(role, settings))
    except NeedsPersonError as error:
        # asyncio closes what lay under a failed handshake in its next rounds only.
        await asyncio.sleep(0.01)
        return str(error)
    try:
        ((cipher,),) = [row[1:] for row in await connection.query("SHOW STATUS LIKE 'Ssl_cipher'")]
        assert bool(cipher) == connection.encrypted
        return ENCRYPTED if cipher else CLEAR
    finally:
        await connection.quit()


def source(secure: Secure, server: Server, mode: Tls, **more: object) -> SourceSettings:
    given: dict[str, object] = {"user": "root", "tls_ca": secure.authority.ca, **more}
    return SourceSettings(port=server.port, tls=mode, **given)  # type: ignore[arg-type] # several


@pytest.mark.parametrize("offer", OUTCOMES)
async def test_every_mode_with_every_certificate(secure: Secure, offer: Offer) -> None:
    server = secure.offering(offer)
    for mode, expected in zip(MODES, OUTCOMES[offer], strict=True):
        found = await outcome(source(secure, server, mode))
        if expected in {CLEAR, ENCRYPTED}:
            assert found == expected, (offer, mode)
            continue
        assert expected in found, (offer, mode)
        assert "\n" not in found
        assert f"the source 127.0.0.1:{server.port}" in found


async def test_the_systems_authorities_do_not_know_ours(secure: Secure) -> None:
    port = secure.offering("good").port
    settings = TargetSettings(port=port, user="root", tls="verify_identity")
    assert "not signed by a CA in [target] tls_ca" in await outcome(settings)


async def test_an_account_that_requires_tls(secure: Secure) -> None:
    server = secure.offering("good")
    account = {"user": "tls", "password": SecretStr("p")}
    assert await outcome(source(secure, server, "preferred", **account)) == ENCRYPTED
    refused = await outcome(source(secure, server, "disabled", **account))
    assert "refuses user 'tls': error 1045" in refused
    assert "REQUIRE SSL" in refused


async def test_certificates_of_clients(secure: Secure) -> None:
    server = secure.offering("good")
    account = {"user": "cert", "password": SecretStr("p")}
    good = secure.authority.sign("client")
    shown = {"tls_cert": good.cert, "tls_key": good.key}
    assert await outcome(source(secure, server, "verify_ca", **account, **shown)) == ENCRYPTED
    assert "REQUIRE X509" in await outcome(source(secure, server, "verify_ca", **account))


@pytest.mark.parametrize("case", ["expired", "wrong_ca"])
def test_a_clients_certificate_is_turned_down(secure: Secure, case: str) -> None:
    server = secure.offering("good")
    if case == "expired":
        bad = secure.authority.sign("late-client", valid_days=-1)
    else:
        bad = secure.other.sign("other-client")
    settings = source(secure, server, "required", tls_cert=bad.cert, tls_key=bad.key)
    # On asyncio's own loop a broken pipe may come before the server's alert is read.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(outcome(settings))
    assert "does not accept the certificate in [source] tls_cert" in found


def test_nothing_is_left_of_a_session_for_the_search_for_cycles(secure: Secure) -> None:
    """Of each it would be 45 KiB: the daemon has it run every 200,000 objects."""
    end = endpoint("source", source(secure, secure.offering("good"), "required"))

    async def sessions(count: int) -> None:
        for ending in ("closed", "told", "lost") * count:
            connection = await Connection.open(end)
            await connection.query("SELECT 1")
            if ending == "told":
                await connection.quit()
            elif ending == "lost":
                secure.server.sql(f"KILL {connection.thread_id}")
                with pytest.raises(ConnectionLostError):
                    await connection.query("SELECT 1")
            connection.close()

    async def live() -> int:
        await sessions(1)
        gc.collect()
        gc.disable()
        try:
            await sessions(5)
            # The event loop ends a connection in its next rounds only.
            await asyncio.sleep(0.05)
            return gc.collect()
        finally:
            gc.enable()

    # The last error may still be there. The daemon's own loop: asyncio's leaves cycles itself.
    assert uvloop.run(live()) < 40


def test_what_is_given_up_is_closed_at_once(secure: Secure) -> None:
    settings = source(secure, secure.offering("good"), "required")

    async def give_up() -> None:
        connection = await Connection.open(endpoint("source", settings))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await connection.query("SELECT SLEEP(60)")
        connection.close()

    # Closed properly, it would wait for the server, and the loop ends before that answers.
    asyncio.run(give_up())
    gc.collect()


async def test_files_that_are_of_no_use(secure: Secure) -> None:
    server = secure.offering("good")
    client, other = secure.authority.sign("one"), secure.authority.sign("two")
    locked = secure.authority.sign("locked", passphrase="secret")
    empty, missing = secure.folder / "empty.pem", secure.folder / "missing.pem"
    empty.write_text("")
    cases: tuple[tuple[dict[str, Path], str], ...] = (
        ({"tls_ca": missing}, f"[source] tls_ca = '{missing}' cannot be read: No such file"),
        ({"tls_ca": empty}, f"[source] tls_ca = '{empty}' contains no certificate of a CA"),
        ({"tls_cert": client.cert, "tls_key": other.key}, "is not the key of tls_cert"),
        ({"tls_cert": client.cert, "tls_key": missing}, "cannot be read: No such file"),
        ({"tls_cert": empty, "tls_key": client.key}, "contains no certificate, or key in PEM"),
        ({"tls_cert": locked.cert, "tls_key": locked.key}, "is encrypted: store it without"),
    )
    for given, said in cases:
        assert said in await outcome(source(secure, server, "verify_ca", **given))
