"""What kind of server is at the other end: asked once a connection, instead of `if mariadb`."""

import re
from dataclasses import dataclass

from mtsd.model.errors import NeedsPersonError
from mtsd.wire.connection import Connection


@dataclass(frozen=True, slots=True)
class ServerTraits:
    """The variables of a server that decide how it is spoken to. Sizes in bytes."""

    version: tuple[int, int, int]
    server_id: int
    uuid: str
    gtid_mode: bool
    """Transactions carry GTIDs (gtid_mode = ON)."""
    log_bin: bool
    binlog_checksum: bool
    max_allowed_packet: int
    read_only: bool
    super_read_only: bool


async def read_traits(connection: Connection) -> ServerTraits:
    """Ask a server. Raises NeedsPersonError on a flavour or version that is not supported."""
    text = connection.server_version
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    role = connection.endpoint.role
    if "mariadb" in text.lower():
        raise NeedsPersonError(
            f"the {role} is MariaDB ({text}): this version replicates MySQL only"
        )
    if found is None or (int(found[1]), int(found[2])) < (5, 6):
        raise NeedsPersonError(f"the {role} is version {text}: MySQL 5.6 or later is needed")
    # A server's own limit would cut off the answer to this and to what is asked later.
    await connection.query("SET @@session.sql_select_limit=18446744073709551615")
    rows = await connection.query(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_id', 'server_uuid', 'gtid_mode',"
        " 'log_bin', 'binlog_checksum', 'max_allowed_packet', 'read_only', 'super_read_only')"
    )
    variables = {str(name).lower(): str(value) for name, value in rows}
    return ServerTraits(
        version=(int(found[1]), int(found[2]), int(found[3])),
        server_id=int(variables["server_id"]),
        uuid=variables.get("server_uuid", "").lower(),
        gtid_mode=variables.get("gtid_mode") == "ON",
        log_bin=variables["log_bin"] == "ON",
        binlog_checksum=variables.get("binlog_checksum", "NONE") != "NONE",
        max_allowed_packet=int(variables["max_allowed_packet"]),
        read_only=variables["read_only"] == "ON",
        super_read_only=variables.get("super_read_only") == "ON",
    )
