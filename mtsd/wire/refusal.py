"""What a refusal by a server means, and what a person has to do about it; without I/O.

Error numbers are the server's own (MySQL manual, "Server Error Message Reference").
"""

import re
import socket
import ssl

from mtsd.model.error_numbers import ER, FULL_NUMBERS, NOT_ALLOWED
from mtsd.model.errors import MtsdError, NeedsPersonError, ServerError, system_reason
from mtsd.model.server import Flavour
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.family import SERVERS

_EXPIRED = 10
_NOT_YET_VALID = 9
_UNTRUSTED = frozenset({2, 18, 19, 20, 21})
"""No issuer found, self-signed, self-signed in the chain, no local issuer, leaf only."""
_OTHER_NAME = frozenset({62, 64})
"""Not for this host name, not for this IP address."""
# OpenSSL's numbers of the results of verifying a certificate: X509_V_ERR_… in x509_vfy.h.

_OF_A_CERTIFICATE = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "DECRYPT_ERROR")
"""Parts of the names of the alerts by which a server rejects a client's certificate."""


class SessionRefusedError(NeedsPersonError):
    """A server refuses a session, and will continue to until a person has done something.

    `number` is the server's error number, 0 if the session did not get that far; `said` is the
    server's own error, if it has sent one.
    """

    def __init__(self, message: str, number: int = 0, answer: ServerError | None = None) -> None:
        super().__init__(message)
        self.number = number
        self.answer = answer


class NoTlsError(SessionRefusedError):
    """A server offers no TLS, but the settings require it."""


def refused(endpoint: Endpoint, error: ServerError) -> SessionRefusedError:
    """Return the error for a login that the server has rejected."""
    remedy = _LOG_IN.get(error.number, "").format(role=endpoint.role)
    message = with_remedy(
        f"the {endpoint.role} {endpoint} refuses user {endpoint.user!r}: {error}", remedy
    )
    return SessionRefusedError(message, error.number, error)


def unknown_plugin(endpoint: Endpoint, plugin: str, flavour: Flavour) -> SessionRefusedError:
    """Return the error for an account whose authentication plugin mtsd does not support.

    `flavour` is the server's: each family has another plugin that mtsd supports.
    """
    supported = SERVERS[flavour].supported_account
    return SessionRefusedError(
        f"the {endpoint.role} {endpoint} requests authentication plugin {plugin!r} for user"
        f" {endpoint.user!r}, which mtsd does not support: give it an account that is {supported}",
        ER.CR_AUTH_PLUGIN_CANNOT_LOAD,
    )


def clear_password(endpoint: Endpoint, plugin: str) -> SessionRefusedError:
    """Return the error for a server that requests the password in clear text, unverified."""
    return SessionRefusedError(
        f"the {endpoint.role} {endpoint} requests the password of user {endpoint.user!r} in clear"
        f" text (authentication plugin {plugin!r}), and nothing proves that it is that server; the"
        f' password was not sent: set [{endpoint.role}] tls = "verify_ca" or "verify_identity", or'
        f" clear_password = true if whoever answers there may have it",
        ER.CR_AUTH_PLUGIN_CANNOT_LOAD,
    )


def no_mysql(endpoint: Endpoint) -> SessionRefusedError:
    """Return the error for something else than a server of either family."""
    return SessionRefusedError(
        f"what answers at {endpoint} is not a MySQL server: check [{endpoint.role}] host and port"
    )


def no_public_key(endpoint: Endpoint) -> SessionRefusedError:
    """Return the error for a password that only a key which the server sends could protect."""
    return SessionRefusedError(
        f"the {endpoint.role} {endpoint} requests the password of user {endpoint.user!r} over a"
        " connection without TLS, and mtsd has no public key of that server to encrypt it with;"
        f' nothing was sent: set [{endpoint.role}] tls = "required" or stricter, or'
        " server_public_key to a copy of the server's public_key.pem, or get_public_key = true if"
        " nobody else can answer there",
        ER.CR_AUTH_PLUGIN_ERR,
    )


def no_plugins(endpoint: Endpoint) -> SessionRefusedError:
    """Return the error for a server that could only be told the password as before MySQL 5.5."""
    return SessionRefusedError(
        f"the {endpoint.role} {endpoint} knows no authentication plugins, as servers that mtsd"
        f" supports do: nothing was sent to it. Check [{endpoint.role}] host and port, and what is"
        " between"
    )


def password_too_long(endpoint: Endpoint) -> SessionRefusedError:
    """Return the error for a password longer than the server's public key can encrypt."""
    return SessionRefusedError(
        f"the password of user {endpoint.user!r} is too long to be encrypted with the public key of"
        f" the {endpoint.role} {endpoint}: set [{endpoint.role}] tls ="
        ' "required" or stricter'
    )


def no_tls(endpoint: Endpoint) -> NoTlsError:
    """Return the error for a server that offers no TLS although the settings require it."""
    return NoTlsError(
        f"the {endpoint.role} {endpoint} offers no TLS, but [{endpoint.role}] tls requires it:"
        " nothing was sent to it. Give that server a certificate (ssl_cert, ssl_key), or set"
        f' [{endpoint.role}] tls = "preferred"'
    )


def tls_failed(endpoint: Endpoint, error: ssl.SSLError) -> SessionRefusedError:
    """Return the error for a TLS handshake that would fail again."""
    role = endpoint.role
    where = f"TLS with the {role} {endpoint} failed"
    if isinstance(error, ssl.SSLCertVerificationError):
        return SessionRefusedError(f"{where}: {_of_their_certificate(endpoint, error)}")
    reason = error.reason or str(error)
    if "ALERT" in reason and any(part in reason for part in _OF_A_CERTIFICATE):
        return SessionRefusedError(
            f"{where}: the {role} does not accept the certificate in [{role}] tls_cert"
            f" ({reason}): it must be valid now, and signed by a CA in that server's ssl_ca"
        )
    return SessionRefusedError(
        f"{where}: {reason}. Both ends need a TLS version and a cipher in common (the server's"
        f' tls_version and ssl_cipher), or set [{role}] tls = "disabled"'
    )


def _of_their_certificate(endpoint: Endpoint, error: ssl.SSLCertVerificationError) -> str:
    role = endpoint.role
    code = error.verify_code
    if code == _EXPIRED:
        return (
            f"the {role}'s certificate has expired, or its CA's has: renew it on that server"
            " (ssl_cert), then ALTER INSTANCE RELOAD TLS"
        )
    if code == _NOT_YET_VALID:
        return (
            f"the {role}'s certificate is not valid yet: check the clocks of both machines,"
            " or renew it on that server (ssl_cert)"
        )
    if code in _OTHER_NAME:
        return (
            f"the {role}'s certificate is not for {endpoint.host!r}: set [{role}] host to a name"
            f' in it, renew it with this name, or set tls = "verify_ca"'
        )
    if code in _UNTRUSTED:
        return (
            f"the {role}'s certificate is not signed by a CA in [{role}] tls_ca"
            f" ({error.verify_message}): add the CA that signed it"
        )
    return f"the {role}'s certificate cannot be verified: {error.verify_message}"


def unreachable(endpoint: Endpoint, error: BaseException) -> str:
    """Describe in one line why there is no connection, for a possibly transient error."""
    role, key = endpoint.role, "unix_socket" if endpoint.unix_socket else "host and port"
    reason = system_reason(error) if isinstance(error, OSError) else str(error)
    if isinstance(error, socket.gaierror):
        return f"host {endpoint.host!r} cannot be resolved ({reason}): check [{role}] host"
    if isinstance(error, ConnectionRefusedError | FileNotFoundError):
        return f"nothing is listening at {endpoint}: start the {role}, or check [{role}] {key}"
    if isinstance(error, TimeoutError):
        return (
            f"no answer from {endpoint} within {endpoint.connect_timeout:g} s"
            f" ([{role}] connect_timeout)"
        )
    return f"{endpoint}: {reason}"


def explained(error: ServerError) -> str:
    """Describe an error that a server returned after the login: what, where, and the remedy."""
    return with_remedy(f"the {error.server or 'server'} refuses: {error}", remedy_of(error))


def with_remedy(message: str, remedy: str) -> str:
    """Return both; the texts of some errors of servers end as a sentence, and of others not."""
    return f"{message.removesuffix('.')}. {remedy}" if remedy else message


def number_and_reason(error: Exception) -> tuple[int, str]:
    """Return a server's number for an error, 0 if it has none, and the error in words."""
    reason = explained(error) if isinstance(error, ServerError) else str(error)
    return error.number if isinstance(error, MtsdError) else 0, reason


def remedy_of(error: ServerError) -> str:
    """Return what a person has to do about an error; "" if that depends on the request."""
    if error.remedy:
        return error.remedy
    remedy = _LATER.get(error.number, "")
    if error.number == _OPTION and not is_read_only(error):
        return ""
    if remedy and error.says(_DEFINER):
        remedy += ', or set [target] definer = "current_user"'
    return remedy.format(role=error.server.partition(" ")[0] or "target") if remedy else ""


def remedy_at_login(error: ServerError, role: str) -> str:
    """Return what a person has to do about an error at the login there; "" if nobody knows."""
    remedy = _LOG_IN.get(error.number) or _LATER.get(error.number, "")
    return remedy.format(role=role)


def is_read_only(error: ServerError) -> bool:
    """Return whether a server refuses a change because it is read-only as a whole."""
    if error.number == _OPTION:
        return error.says(_READ_ONLY)
    return error.number == ER.READ_ONLY_MODE


_OPTION = ER.OPTION_PREVENTS_STATEMENT
"""An option of the server forbids the statement. In any language, the text has its name."""
_READ_ONLY = re.compile("--(super[-_])?read[-_]only")
_DEFINER = re.compile("SET_ANY_DEFINER|ALLOW_NONEXISTENT_DEFINER|SET_USER_ID|SET USER")
"""The privileges to create a view, routine, trigger or event of another account."""
_GRANTS = "Grant it to the user of [{role}] user"
_PASSWORD = "set a new one (ALTER USER … IDENTIFIED BY …) and put it into [{role}] password"  # noqa: S105
_LOG_IN: dict[int, str] = {
    ER.DBACCESS_DENIED_ERROR: _GRANTS,
    ER.ACCESS_DENIED_ERROR: (
        "Check [{role}] user and password; an account with REQUIRE SSL or REQUIRE X509 is also"
        " refused in this way without [{role}] tls, or tls_cert and tls_key"
    ),
    ER.HOST_IS_BLOCKED: (
        "Run TRUNCATE TABLE performance_schema.host_cache on that server once the cause is fixed"
    ),
    ER.HOST_NOT_PRIVILEGED: "Create the account for the host that mtsd connects from",
    ER.NOT_SUPPORTED_AUTH_MODE: "Give it an account that is IDENTIFIED WITH caching_sha2_password",
    ER.PLUGIN_IS_NOT_LOADED: (
        "Load that plugin on the server, or change the account to caching_sha2_password"
    ),
    ER.MUST_CHANGE_PASSWORD: "The password has expired: " + _PASSWORD,
    ER.MUST_CHANGE_PASSWORD_LOGIN: "The password has expired: " + _PASSWORD,
    ER.ACCOUNT_HAS_BEEN_LOCKED: "Unlock it on the server: ALTER USER … ACCOUNT UNLOCK",
    ER.SECURE_TRANSPORT_REQUIRED: 'Set [{role}] tls = "required" or stricter',
    ER.USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK: (
        "Unlock it on the server (ALTER USER … ACCOUNT UNLOCK), and check [{role}] password"
    ),
}
"""What to do about an error at login."""
_SPACE = "Free space on the disk of the {role} that the server's error log names"
_LATER: dict[int, str] = {
    **dict.fromkeys(FULL_NUMBERS, _SPACE),
    **dict.fromkeys(NOT_ALLOWED, _GRANTS),
    ER.UNKNOWN_ERROR: "The error log of the {role} has the details",
    ER.RECORD_FILE_FULL: _SPACE + ", or raise the limit of the tablespace",
    _OPTION: (
        "Set read_only and super_read_only OFF on the {role}; with read_only alone, it is enough to"
        " grant CONNECTION_ADMIN to [{role}] user"
    ),
    ER.MUST_CHANGE_PASSWORD: _LOG_IN[ER.MUST_CHANGE_PASSWORD],
    ER.NEW_ABORTING_CONNECTION: (
        "Of init_connect: correct it on the {role}, or grant CONNECTION_ADMIN to [{role}] user,"
        " whose sessions pass over it"
    ),
    **dict.fromkeys(
        (ER.BINLOG_STMT_MODE_AND_ROW_ENGINE, ER.BINLOG_ROW_INJECTION_AND_STMT_MODE),
        "SET PERSIST binlog_format = ROW on the {role}, or set [target] binary_log = false",
    ),
    ER.CON_COUNT_ERROR: "Raise max_connections on the {role}, or end sessions there",
    ER.TOO_MANY_USER_CONNECTIONS: "Raise max_user_connections on the {role}, or the account's",
    ER.USER_LIMIT_REACHED: "Raise that limit of the account on the {role} (ALTER USER … WITH …)",
    ER.SERVER_OFFLINE_MODE: (
        "Set offline_mode OFF on the {role}, or grant CONNECTION_ADMIN to [{role}] user"
    ),
    ER.READ_ONLY_MODE: "Set read_only and super_read_only OFF on the {role}",
    ER.CLIENT_LOCAL_FILES_DISABLED: (
        "Set local_infile = ON on the {role}: the files of LOAD DATA need it"
    ),
}
"""What to do about an error of a statement."""
