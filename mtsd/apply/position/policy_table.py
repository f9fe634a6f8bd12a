"""The table slave_chosen_policy: what `parallel_type = "auto"` has come to for a channel.

A restart goes on with it, whatever the servers say by then. It is forgotten with the position, and
once the configuration names a policy. Nothing here waits.
"""

from typing import Final

from mtsd.apply.position.table_declaration import (
    ONE_A_CHANNEL,
    ChannelTable,
    Table,
    moment,
    shown_text,
    text,
)
from mtsd.model.parallel_type import POLICY_NAMES
from mtsd.schedule.policies.automatic import ChosenPolicy
from mtsd.wire.exchange import Row

CHOSEN_POLICY: Final = "slave_chosen_policy"
_TYPE: Final = text("Parallel_type", "VARCHAR(64) NOT NULL")
_BECAUSE: Final = shown_text("Because", "TEXT NOT NULL")
_TABLE: Final = Table(
    CHOSEN_POLICY, (ONE_A_CHANNEL, _TYPE, _BECAUSE, moment("Chosen_at", is_read=False))
)


class PolicyTable(ChannelTable):
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        super().__init__(_TABLE, schema, channel)

    def replace_chosen(self, chosen: ChosenPolicy) -> bytes:
        """Return the statement that records a choice."""
        return self.replace(_TYPE.of(chosen.parallel_type), _BECAUSE.of(chosen.because))

    def chosen(self, row: Row) -> ChosenPolicy | None:
        """Parse a row of `select`; None if it has a policy of another version of mtsd."""
        stored = _TABLE.read(row)
        name = POLICY_NAMES.get(stored[_TYPE])
        return None if name is None else ChosenPolicy(name, stored[_BECAUSE])
