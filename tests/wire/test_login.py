"""Accounts of every kind log in to a real server, or it is said why they cannot."""

import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
import uvloop

from mtsd.model.errors import (
    CannotConnectError,
    ConnectionLostError,
    NeedsPersonError,
    ServerError,
)
from mtsd.source.dump_errors import heard
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.refusal import SessionRefusedError
from mtsd.wire.tls import public_key, tls_context
from mtsd.wire.traits import read_traits
from tests.servers.certificates import Authority
from tests.servers.impostor import impostor
from tests.servers.mysqld import Server
from tests.servers.proxy import Direction, Proxy

pytestmark = pytest.mark.servers

PASSWORDS = {
    "short": "p",
    "none": "",
    "umlauts": "Pässwörd €",
    "quotes": 'it\'s a \\ "word"',
    "long": "x" * 150,
    "longest": "y" * 250,
}
TOO_LONG_FOR_RSA = {"longest"}
PLUGINS = ("caching_sha2_password", "sha256_password")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        for plugin in PLUGINS:
            for name, password in PASSWORDS.items():
                quoted = password.replace("\\", "\\\\").replace("'", "\\'")
                server.sql(
                    f"CREATE USER {plugin}_{name}@'%' IDENTIFIED WITH {plugin} BY '{quoted}'"
                )
        server.sql("INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'")
        server.sql("CREATE USER daemon@localhost IDENTIFIED WITH auth_socket AS 'root'")
        server.sql(
            "CREATE USER expired@'%' IDENTIFIED BY 'p' PASSWORD EXPIRE;"
            "CREATE USER locked@'%' IDENTIFIED BY 'p' ACCOUNT LOCK;"
            "CREATE USER far@'10.1.2.3' IDENTIFIED BY 'p'"
        )
        yield server


def unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def over(way: str, server: Server, user: str, password: str) -> Endpoint:
    if way == "socket":
        return Endpoint("target", "", 0, str(server.socket), user, password)
    tls = unverified() if way == "tls" else None
    return Endpoint("target", "127.0.0.1", server.port, "", user, password, tls=tls)


async def logged_in(endpoint: Endpoint) -> str:
    connection = await Connection.open(endpoint)
    try:
        return str((await connection.query("SELECT USER()"))[0][0])
    finally:
        await connection.quit()


async def refusal(endpoint: Endpoint) -> str:
    with pytest.raises(SessionRefusedError) as caught:
        await Connection.open(endpoint)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("way", ["tls", "clear", "socket"])
@pytest.mark.parametrize("plugin", PLUGINS)
async def test_passwords_over_every_way(server: Server, plugin: str, way: str) -> None:
    for name, password in PASSWORDS.items():
        user = f"{plugin}_{name}"
        endpoint = over(way, server, user, password)
        # In full, then by what the server has cached.
        server.sql("FLUSH PRIVILEGES")
        by_key = way == "clear" or (way == "socket" and plugin == "sha256_password")
        if way == "clear":
            if password:
                assert "get_public_key = true" in await refusal(endpoint)
            endpoint = replace(endpoint, get_public_key=True)
        if by_key and name in TOO_LONG_FOR_RSA:
            assert "set [target] tls" in await refusal(endpoint)
            continue
        for _ in range(2):
            assert (await logged_in(endpoint)).startswith(f"{user}@"), (user, way)


async def test_the_servers_own_public_key(server: Server) -> None:
    ((folder,),) = server.sql("SELECT @@datadir")
    key = public_key("target", Path(str(folder), "public_key.pem"))
    server.sql("FLUSH PRIVILEGES")
    for plugin in PLUGINS:
        endpoint = over("clear", server, f"{plugin}_short", "p")
        assert await logged_in(replace(endpoint, server_public_key=key))


async def test_auth_socket(server: Server) -> None:
    assert await logged_in(over("socket", server, "daemon", "")) == "daemon@localhost"
    assert "error 1698" in await refusal(over("clear", server, "daemon", ""))


@pytest.mark.parametrize(
    ("user", "password", "said"),
    [
        ("root", "wrong", "error 1045 (28000): Access denied for user 'root'"),
        ("nobody", "p", "Check [target] user and password"),
        ("expired", "p", "The password has expired: set a new one"),
        ("locked", "p", "error 3118 (HY000): Access denied for user 'locked'"),
        ("far", "p", "error 1045"),
    ],
)
async def test_refused_accounts(server: Server, user: str, password: str, said: str) -> None:
    for way in ("tls", "clear"):
        endpoint = replace(over(way, server, user, password), get_public_key=True)
        found = await refusal(endpoint)
        assert f"the target 127.0.0.1:{server.port} refuses user '{user}'" in found
        assert said in found


class Asking:
    """Changes the request for sha256_password into one for another plugin."""

    def __init__(self, plugin: bytes) -> None:
        self._plugin = plugin

    def __call__(self, data: bytes) -> bytes:
        head, name, tail = data.partition(b"\xfesha256_password\0")
        if not name or len(head) != 4:
            return data
        payload = b"\xfe" + self._plugin + b"\0" + tail
        return len(payload).to_bytes(3, "little") + head[3:] + payload


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (b"authentication_of_others", "requests authentication plugin 'authentication_of_others'"),
        (b"mysql_clear_password", "the password was not sent: set [target] tls"),
    ],
)
async def test_plugins_that_are_not_for_us(server: Server, plugin: bytes, said: str) -> None:
    with Proxy(server, lambda: Asking(plugin)) as proxy:
        endpoint = Endpoint("target", "127.0.0.1", proxy.port, "", "sha256_password_short", "p")
        found = await refusal(endpoint)
        assert said in found
        assert "user 'sha256_password_short'" in found


async def test_another_version_after_the_login(server: Server) -> None:
    """Before TLS, anybody in between can change the greeting."""

    def changed(data: bytes) -> bytes:
        return data.replace(b"\x0a9.", b"\x0a8.", 1) if data[4:7] == b"\x0a9." else data

    with Proxy(server, lambda: changed) as proxy:
        endpoint = Endpoint("source", "127.0.0.1", proxy.port, "", "root", "", tls=unverified())
        connection = await Connection.open(endpoint)
        try:
            with pytest.raises(NeedsPersonError, match="says after the login that it is 9"):
                await read_traits(connection)
        finally:
            connection.close()


async def test_an_impostor_behind_tls(tmp_path: Path) -> None:
    """Whoever has any certificate at all asks for the password in clear text."""
    authority = Authority.new(tmp_path, "authority")
    shown = authority.sign("server", "127.0.0.1")
    verified = tls_context("source", "verify_ca", ca=authority.ca, cert=None, key=None)
    asks = b"\xfemysql_clear_password\0" + bytes(21)
    with impostor(asks, shown) as (port, heard):
        endpoint = Endpoint("source", "127.0.0.1", port, "", "u", "S3cret!", tls=unverified())
        found = await refusal(endpoint)
        assert '"verify_ca" or "verify_identity"' in found
        assert "clear_password = true" in found
        assert not any(b"S3cret!" in each for each in heard)
        for willing in (replace(endpoint, tls=verified), replace(endpoint, clear_password=True)):
            heard.clear()
            await refusal(willing)
            assert heard[-1] == b"S3cret!\0"


async def test_an_impostor_with_a_public_key() -> None:
    asks = b"\x01\x04"
    with impostor(asks) as (port, heard):
        endpoint = Endpoint("source", "127.0.0.1", port, "", "u", "S3cret!")
        found = await refusal(endpoint)
        for key in ("[source] tls", "server_public_key", "get_public_key = true"):
            assert key in found
        assert len(heard) == 1
        # 2 asks for the key.
        await refusal(replace(endpoint, get_public_key=True))
        assert heard[-1] == b"\x02"


async def test_a_server_without_plugins() -> None:
    """It would be told a hash of the password that takes no time to break."""
    with impostor(b"\xfe", capabilities=0) as (port, heard):
        endpoint = Endpoint("source", "127.0.0.1", port, "", "u", "S3cret!")
        assert "knows no authentication plugins" in await refusal(endpoint)
        assert not heard


async def test_native_passwords_are_no_more(server: Server) -> None:
    with pytest.raises(Exception, match="mysql_native_password"):
        server.sql("CREATE USER old@'%' IDENTIFIED WITH mysql_native_password BY 'p'")


def without_tls(greeting: bytes) -> bytes:
    """Clear the TLS flag of a greeting: what somebody in between can do."""
    if greeting[4:5] != b"\x0a":
        return greeting
    flags = greeting.index(b"\0", 5) + 1 + 4 + 8 + 1 + 1
    return greeting[:flags] + bytes((greeting[flags] & ~0x08,)) + greeting[flags + 1 :]


async def test_nothing_is_said_to_a_server_that_hides_tls(server: Server) -> None:
    with Proxy(server, lambda: without_tls) as proxy:
        required = Endpoint(
            "source", "127.0.0.1", proxy.port, "", "root", "", tls=unverified(), require_tls=True
        )
        assert "offers no TLS" in await refusal(required)
        assert not proxy.heard


async def test_who_is_too_many_may_come_again(server: Server) -> None:
    server.sql("CREATE USER some@'%' IDENTIFIED BY 'p' WITH MAX_USER_CONNECTIONS 1")
    endpoint = over("tls", server, "some", "p")
    first = await Connection.open(endpoint)
    try:
        with pytest.raises(ServerError) as caught:
            await Connection.open(endpoint)
        assert caught.value.number == 1226
    finally:
        await first.quit()


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_a_session_that_falls_silent(server: Server, direction: Direction) -> None:
    with Proxy(server) as proxy:
        endpoint = Endpoint("source", "127.0.0.1", proxy.port, "", "root", "", connect_timeout=60.0)
        connection = await Connection.open(endpoint)
        connection.endpoint = replace(endpoint, connect_timeout=0.5)
        proxy.stall(2, (direction,))
        with pytest.raises(ConnectionLostError, match=r"has not answered within 0\.5 s"):
            async with connection.answering():
                await connection.query("SELECT 1")
        assert connection.closed


async def test_a_source_that_sends_nothing(server: Server) -> None:
    connection = await Connection.open(over("tls", server, "root", ""))
    with pytest.raises(ConnectionLostError, match=r"nothing has come from .* for 0\.1 s"):
        await heard(connection, 0.1)
    connection.close()


async def test_addresses_where_no_server_is(server: Server) -> None:
    with socket.socket() as silent, socket.socket() as unused:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        unused.bind(("127.0.0.1", 0))
        for host, port, path, timeout_s, said in (
            ("127.0.0.1", unused.getsockname()[1], "", 60, "nothing is listening at 127.0.0.1:"),
            ("no-such-host.invalid", 3306, "", 60, "check [source] host"),
            ("", 0, str(server.folder / "nothing.sock"), 60, "or check [source] unix_socket"),
            ("127.0.0.1", silent.getsockname()[1], "", 0.5, "no answer from 127.0.0.1:"),
        ):
            with pytest.raises(CannotConnectError, match="cannot connect to the source") as lost:
                await Connection.open(
                    Endpoint("source", host, port, path, "root", "", connect_timeout=timeout_s)
                )
            assert said in str(lost.value)


def test_what_is_no_mysql_server() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def greet() -> None:
            peer, _ = other.accept()
            with peer:
                peer.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
                peer.recv(1)

        thread = Thread(target=greet)
        thread.start()
        port = other.getsockname()[1]
        endpoint = Endpoint("source", "127.0.0.1", port, "", "root", "", connect_timeout=60.0)
        with pytest.raises(SessionRefusedError, match="is not a MySQL server"):
            uvloop.run(Connection.open(endpoint))
        thread.join()
