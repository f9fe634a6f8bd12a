"""The table slave_target_identity: on which server the channel's position is at home.

A copy of the position tables on another server would go on as the same replica as the original, and
the source ends the older of two dumps of one replica. Nothing here waits.
"""

from dataclasses import dataclass

from mtsd.apply.position.worker_info import TABLE_OPTIONS
from mtsd.apply.sql import literals
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.wire.connection import Row

COPIED = Reason(
    "the position tables in {schema} were copied from another server, {former} ({former_place}), to"
    " this one, {uuid} ({place}), or restored here",
    "make them a replica of its own with mtsd position adopt{config}; if this server takes the"
    " place of that one, first make sure that no mtsd runs for that one",
)
_LONGEST_PLACE = 320


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


class IdentityTable:
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        self._name = literals.name(schema) + b".`slave_target_identity`"
        self._channel = literals.text(channel)
        self._of_channel = b" WHERE `Channel_name`=" + self._channel

    def definition(self) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        return f"""CREATE TABLE IF NOT EXISTS {self._name.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL PRIMARY KEY,
  `Target_uuid` CHAR(36) NOT NULL COMMENT 'MariaDB: its server_id',
  `Target_place` VARCHAR({_LONGEST_PLACE}) NOT NULL COMMENT 'its hostname and port'
) {TABLE_OPTIONS}""".encode()

    def select(self) -> bytes:
        """Return the query for the channel's row, for `identity`."""
        return b"SELECT `Target_uuid`,`Target_place` FROM " + self._name + self._of_channel

    def identity(self, row: Row) -> TargetIdentity:
        """Parse a row of `select`."""
        uuid, place = row
        return TargetIdentity(str(uuid), str(place))

    def replace(self, identity: TargetIdentity) -> bytes:
        """Return the statement that records where the position is at home."""
        return b"REPLACE INTO %b VALUES (%b,%b,%b)" % (
            self._name,
            self._channel,
            literals.text(identity.uuid),
            literals.text(identity.place[:_LONGEST_PLACE]),
        )

    def delete(self) -> bytes:
        """Return the statement that forgets it."""
        return b"DELETE FROM " + self._name + self._of_channel
