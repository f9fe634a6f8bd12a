"""The table slave_split_branch: which branches of a split transaction are committed.

Each branch writes its row itself, so the row is there exactly if the branch is committed. The rows
go when the transaction is recorded as applied. Nothing here waits.
"""

import re
from typing import Final, NamedTuple

from mtsd.apply.position.table_declaration import CHANNEL, ChannelTable, Table, whole
from mtsd.model.xa_xid import XaXid

SPLIT: Final = "split"
"""The kind, in slave_in_doubt, of a transaction that is applied in branches."""
_FORMAT_ID: Final = 1
"""What most others have: MySQL can lose prepared transactions if their format ids differ."""
_RECORDED: Final = re.compile(rb"split into (\d+) branches(, to be committed)?")


_NUMBER: Final = whole("Group_number")
_BRANCH: Final = whole("Branch", "INT UNSIGNED", "NOT NULL COMMENT 'from 0'")
_TABLE: Final = Table(
    "slave_split_branch",
    (CHANNEL, _NUMBER, _BRANCH),
    "PRIMARY KEY (`Channel_name`, `Group_number`, `Branch`)",
)


class SplitRecord(NamedTuple):
    """What is recorded of a split transaction: its branches, and whether all are to be committed.

    That is decided once all of them are prepared.
    """

    branches: int
    decided: bool

    def text(self) -> bytes:
        """Return it as the statement of its record in slave_in_doubt."""
        return b"split into %d branches%b" % (
            self.branches,
            b", to be committed" if self.decided else b"",
        )

    @classmethod
    def parse(cls, statement: bytes) -> "SplitRecord":
        """Return what `text` has written. Raises ValueError."""
        match = _RECORDED.fullmatch(statement)
        if match is None:
            raise ValueError(f"not the record of a split transaction: {statement!r}")
        return cls(int(match[1]), match[2] is not None)


def branch_xid(daemon_uuid: str, number: int, branch: int) -> XaXid:
    """Return the xid of a branch, from 0, of the group of that number."""
    return XaXid(_FORMAT_ID, f"mtsd:{daemon_uuid}:{number}".encode(), b"%d" % branch)


class SplitTable(ChannelTable):
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        super().__init__(_TABLE, schema, channel)

    def insert_branch(self, number: int, branch: int) -> bytes:
        """Return the statement by which a branch says that it is committed."""
        return self.insert(_NUMBER.of(number), _BRANCH.of(branch))

    def select_branches(self, number: int) -> bytes:
        """Return the query for the committed branches of a group, one a row."""
        return self.select(_BRANCH.selected, _is(number))

    def delete_group(self, number: int) -> bytes:
        """Return the statement that removes the rows of a group."""
        return self.delete(_is(number))


def _is(number: int) -> bytes:
    return b" AND " + _NUMBER.equals(number)
