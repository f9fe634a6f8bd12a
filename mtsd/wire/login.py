"""Logging in to a server: aiomysql's login, without what a replica must not do.

By itself, aiomysql continues unencrypted if a server offers no TLS, reveals the password to any
server that asks for it, in clear text, encrypted with whatever key that server sends, or hashed as
before MySQL 4.1, and encodes passwords as Latin-1.
"""

import asyncio
import os
import socket
from collections.abc import Sequence
from errno import ECONNRESET
from typing import Final

import aiomysql
from pymysql.constants import CLIENT
from pymysql.err import InternalError
from pymysql.protocol import MysqlPacket

from mtsd import __version__
from mtsd.model.server import flavour_of
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.inbox import AnswerError
from mtsd.wire.refusal import (
    clear_password,
    no_mysql,
    no_plugins,
    no_public_key,
    no_tls,
    password_too_long,
    unknown_plugin,
)
from mtsd.wire.result import LARGEST_RESULT, PACKET_COST, Result, parsing

_FIRST_TRIED = "caching_sha2_password"
_GREETED = frozenset({_FIRST_TRIED, "mysql_native_password"})
_IN_CLEAR = "mysql_clear_password"
_NOT_OVER_SOCKETS = "sha256_password"
_KNOWN = frozenset({*_GREETED, _NOT_OVER_SOCKETS, _IN_CLEAR})
_BEFORE_LOGIN: Final = 1 << 16
"""Bytes of all that a server says before it knows who is there: a greeting, a key, an answer."""
_SHORTEST_TOO_LONG: Final = 86
"""Bytes of a password that the smallest RSA key in use, of 1024 bits, cannot encrypt with OAEP."""
_KEEPALIVE_IDLE_S: Final = 15
_KEEPALIVE_INTERVAL_S: Final = 5
_KEEPALIVE_PROBES: Final = 3


class LogIn(aiomysql.Connection):  # type: ignore[misc]  # aiomysql ships no types
    """An aiomysql connection that is not established yet."""

    def __init__(
        self, endpoint: Endpoint, program_name: str, about: Sequence[tuple[str, str]]
    ) -> None:
        self._endpoint = endpoint
        self._fetched_key: bytes | None = None
        super().__init__(
            host=endpoint.host,
            port=endpoint.port,
            unix_socket=endpoint.unix_socket or None,
            user=endpoint.user,
            # aiomysql encodes it as Latin-1, while the servers' own clients send UTF-8.
            password=endpoint.password.encode().decode("latin-1"),
            charset="utf8mb4",
            autocommit=None,
            connect_timeout=endpoint.connect_timeout,
            ssl=endpoint.tls if not endpoint.unix_socket else None,
            program_name=program_name,
            client_flag=CLIENT.FOUND_ROWS if endpoint.found_rows else 0,
        )
        # aiomysql calls itself the client, and has no parameter for any other attribute.
        self._connect_attrs |= {
            "_client_name": "mtsd",
            "_client_version": __version__,
            **dict(about),
        }
        self._may_read = _BEFORE_LOGIN
        """Bytes of memory for what may still be read."""
        if endpoint.role == "target":
            # For `Connection.load`. aiomysql's own answer would be any file that the server names,
            # so to aiomysql it remains off.
            self.client_flag |= CLIENT.LOCAL_FILES

    @property
    def server_public_key(self) -> bytes | None:
        """The key that aiomysql encrypts the password with; None makes it ask the server for one.

        Read only where that is about to happen. Raises SessionRefusedError if it must not.
        """
        endpoint = self._endpoint
        if endpoint.server_public_key:
            return endpoint.server_public_key
        if not endpoint.get_public_key and not endpoint.unix_socket:
            raise no_public_key(endpoint)
        return self._fetched_key

    @server_public_key.setter
    def server_public_key(self, key: bytes | None) -> None:
        self._fetched_key = key

    async def _connect(self) -> None:
        """Connect and authenticate.

        Before Python 3.12, `asyncio.wait_for`, which aiomysql calls, forgets a cancellation that
        comes when the server has just accepted the connection.
        """
        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        await super()._connect()
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError
        self.may_read(LARGEST_RESULT)

    def close(self) -> None:
        """Close immediately, without telling the server; whoever waits on it is woken.

        Closing properly, as aiomysql does also where it is cancelled, would wait for the server's
        side of TLS: half a minute if it is silent. If the loop ends before, the socket stays open.
        """
        if self._writer is not None:
            self._writer.transport.abort()
        super().close()

    def _set_keep_alive(self) -> None:
        """Let the system detect within half a minute that an idle session's server has vanished."""
        self.set_tcp(socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_S)
        self.set_tcp(socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S)
        self.set_tcp(socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def _set_nodelay(self, value: bool) -> None:
        self.set_tcp(socket.TCP_NODELAY, int(value))

    def set_tcp(self, option: int, value: int) -> None:
        """Set an option of the connection. Raises ConnectionResetError if it has ended."""
        connected = self._writer.get_extra_info("socket")
        if connected is None or self._writer.transport.is_closing():
            # uvloop's has no socket any more: aiomysql would take that for a bug.
            raise ConnectionResetError(ECONNRESET, os.strerror(ECONNRESET))
        connected.setsockopt(socket.IPPROTO_TCP, option, value)

    def may_read(self, size: int) -> None:
        """Allow `size` bytes of memory for what is read from now on."""
        self._may_read = size

    def charge(self, size: int) -> None:
        """Count `size` bytes of memory. Raises AnswerError if those are too many."""
        self._may_read -= size
        if self._may_read < 0:
            raise AnswerError("its answer is larger than any that mtsd asks for")

    async def _read_bytes(self, num_bytes: int) -> bytes:
        # Before they are read: a packet says how large it is, and the next one may continue it.
        self.charge(num_bytes + PACKET_COST)
        data: bytes = await super()._read_bytes(num_bytes)
        return data

    async def _read_packet(self, packet_type: type[MysqlPacket] = MysqlPacket) -> MysqlPacket:
        with parsing():
            return await super()._read_packet(packet_type)

    async def read_result(self, *, keep: bool) -> Result:
        """Read the next result of a statement. Raises MySQLError, AnswerError, FileAskedError."""
        self.may_read(LARGEST_RESULT)
        self._result = None
        result = Result(self, keep=keep)
        with parsing():
            await result.read()
        self._result = result
        return result

    async def _get_server_information(self) -> None:
        try:
            with parsing():
                await super()._get_server_information()
                int(self.server_version.split(".", 1)[0])
        except (AnswerError, InternalError) as error:
            if isinstance(error, InternalError) and isinstance(error.args[0], int):
                raise
            raise no_mysql(self._endpoint) from error

    async def _request_authentication(self) -> None:
        endpoint = self._endpoint
        offered = self.server_capabilities & CLIENT.SSL
        if not offered:
            if endpoint.require_tls and not endpoint.unix_socket:
                raise no_tls(endpoint)
            # A server without TLS would report the flag as a bad handshake.
            self.client_flag &= ~CLIENT.SSL
        if not self.server_capabilities & CLIENT.PLUGIN_AUTH:
            # aiomysql would answer with the password as servers before 4.1 wanted it.
            raise no_plugins(endpoint)
        if self._server_auth_plugin not in _GREETED:
            # The first answer would be computed for it, whatever the account's own plugin is.
            self._client_auth_plugin = _FIRST_TRIED
        try:
            with parsing():
                await super()._request_authentication()
        except BaseException as error:
            # Closing properly, as aiomysql does, would wait for the server's side of TLS.
            if self._writer is not None:
                self._writer.transport.abort()
            too_long = len(self._password) >= _SHORTEST_TOO_LONG
            if too_long and isinstance(error.__cause__, ValueError):
                raise password_too_long(endpoint) from error
            raise

    async def _process_auth(self, plugin_name: bytes, auth_packet: object) -> object:
        plugin = plugin_name.decode("utf-8", "replace")
        if plugin not in _KNOWN:
            raise unknown_plugin(self._endpoint, plugin, flavour_of(self.server_version))
        if plugin == _IN_CLEAR and not (
            self._endpoint.is_verified or self._endpoint.clear_password
        ):
            raise clear_password(self._endpoint, plugin)
        if plugin == _NOT_OVER_SOCKETS and self._unix_socket:
            # Here the server considers a Unix socket a line that others can read.
            self._secure: bool = False
        return await super()._process_auth(plugin_name, auth_packet)
