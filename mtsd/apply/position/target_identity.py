"""The table slave_target_identity: on which server the channel's position is at home.

A copy of the position tables on another server would go on as the same replica as the original, and
the source ends the older of two dumps of one replica. Nothing here waits.
"""

from dataclasses import dataclass

from mtsd.apply.position.table_declaration import ONE_A_CHANNEL, ChannelTable, Table, text
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.wire.exchange import Row

COPIED = Reason(
    "the position tables in {schema} were copied from another server, {former} ({former_place}), to"
    " this one, {uuid} ({place}), or restored here",
    "make them a replica of its own with mtsd position adopt{config}; if this server takes the"
    " place of that one, first make sure that no mtsd runs for that one",
)
_LONGEST_PLACE = 320
_UUID = text("Target_uuid", "CHAR(36) NOT NULL COMMENT 'MariaDB: its server_id'")
_PLACE = text("Target_place", f"VARCHAR({_LONGEST_PLACE}) NOT NULL COMMENT 'its hostname and port'")
_TABLE = Table("slave_target_identity", (ONE_A_CHANNEL, _UUID, _PLACE))


@dataclass(frozen=True, slots=True)
class TargetIdentity:
    """A target: its server_uuid, or on MariaDB "server_id N"; and HOST:PORT as it says itself."""

    uuid: str
    place: str


def copied(
    schema: str,
    home: TargetIdentity | None,
    now: TargetIdentity,
    before: TargetIdentity | None = None,
) -> Refused | None:
    """Decide whether position tables that are at `home` are a copy on the server `now`.

    `before` is the target that this process has lost: if that was their home, a replica of it has
    been promoted, and nobody else goes on there. No home is recorded if an older mtsd was here.
    """
    if home is None or home.uuid == now.uuid or home == before:
        return None
    return refuse(
        COPIED,
        schema=schema,
        former=home.uuid,
        former_place=home.place,
        uuid=now.uuid,
        place=now.place,
    )


class IdentityTable(ChannelTable):
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        super().__init__(_TABLE, schema, channel)

    def identity(self, row: Row) -> TargetIdentity:
        """Parse a row of `select`."""
        stored = _TABLE.read(row)
        return TargetIdentity(stored[_UUID], stored[_PLACE])

    def replace_identity(self, identity: TargetIdentity) -> bytes:
        """Return the statement that records where the position is at home."""
        return self.replace(_UUID.of(identity.uuid), _PLACE.of(identity.place[:_LONGEST_PLACE]))
