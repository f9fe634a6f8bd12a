"""What kind of server is at the other end: queried once per connection, replaces `if mariadb`."""

import re
from dataclasses import dataclass

from mtsd.model.errors import NeedsPersonError
from mtsd.model.reason import Reason, Refused, refuse
from mtsd.wire.connection import Connection

Version = tuple[int, int, int]

MARIADB = Reason(
    "the {server} is MariaDB ({version})",
    "use a MySQL server: this version of mtsd replicates MySQL only",
)
TOO_OLD = Reason(
    "the {server} is version {version}", "upgrade it: MySQL {oldest} or later is needed"
)
_OLDEST: dict[str, Version] = {"source": (5, 6, 0), "target": (8, 0, 0)}


@dataclass(frozen=True, slots=True)
class ServerTraits:
    """The server variables that determine how to talk to it. Sizes in bytes."""

    version: Version
    server_id: int
    uuid: str
    gtid_mode: bool
    """Transactions carry GTIDs (gtid_mode = ON)."""
    log_bin: bool
    binlog_checksum: bool
    max_allowed_packet: int
    read_only: bool
    super_read_only: bool
    lower_case_table_names: bool
    """Whether table names are not case-sensitive."""


def supported(server: str, text: str) -> Version | Refused:
    """Return the version of a `server` ("source" or "target") from the `text` of its greeting."""
    if "mariadb" in text.lower():
        return refuse(MARIADB, server=server, version=text)
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    version = (int(found[1]), int(found[2]), int(found[3])) if found else (0, 0, 0)
    if version < _OLDEST[server]:
        oldest = ".".join(map(str, _OLDEST[server][:2]))
        return refuse(TOO_OLD, server=server, version=text, oldest=oldest)
    return version


async def read_traits(connection: Connection) -> ServerTraits:
    """Query a server. Raises NeedsPersonError if its flavour or version is not supported."""
    version = supported(connection.endpoint.role, connection.server_version)
    if isinstance(version, Refused):
        raise NeedsPersonError(str(version))
    # A limit set on the server would truncate the answer to this and to later queries.
    await connection.query("SET @@session.sql_select_limit=18446744073709551615")
    rows = await connection.query(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_id', 'server_uuid', 'gtid_mode',"
        " 'log_bin', 'binlog_checksum', 'max_allowed_packet', 'read_only', 'super_read_only',"
        " 'lower_case_table_names')"
    )
    variables = {str(name).lower(): str(value) for name, value in rows}
    return ServerTraits(
        version=version,
        server_id=int(variables["server_id"]),
        uuid=variables.get("server_uuid", "").lower(),
        gtid_mode=variables.get("gtid_mode") == "ON",
        log_bin=variables["log_bin"] == "ON",
        binlog_checksum=variables.get("binlog_checksum", "NONE") != "NONE",
        max_allowed_packet=int(variables["max_allowed_packet"]),
        read_only=variables["read_only"] == "ON",
        super_read_only=variables.get("super_read_only") == "ON",
        lower_case_table_names=variables.get("lower_case_table_names", "0") != "0",
    )
