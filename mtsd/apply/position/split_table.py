"""The table slave_split_branch: which branches of a split transaction are committed.

Each branch writes its row itself, so the row is there exactly if the branch is committed. The rows
go when the transaction is recorded as applied. Nothing here waits.
"""

import re
from typing import Final, NamedTuple

from mtsd.apply.position.worker_info import TABLE_OPTIONS
from mtsd.apply.sql import literals
from mtsd.model.xa_xid import XaXid

SPLIT: Final = "split"
"""The kind, in slave_in_doubt, of a transaction that is applied in branches."""
_FORMAT_ID: Final = 1
"""What most others have: MySQL can lose prepared transactions if their format ids differ."""
_RECORDED: Final = re.compile(rb"split into (\d+) branches(, to be committed)?")


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
        found = _RECORDED.fullmatch(statement)
        if found is None:
            raise ValueError(f"not the record of a split transaction: {statement!r}")
        return cls(int(found[1]), found[2] is not None)


def branch_xid(daemon_uuid: str, number: int, branch: int) -> XaXid:
    """Return the xid of a branch, from 0, of the group of that number."""
    return XaXid(_FORMAT_ID, f"mtsd:{daemon_uuid}:{number}".encode(), b"%d" % branch)


class SplitTable:
    """Statements on the table for one channel in one schema."""

    def __init__(self, schema: str, channel: str) -> None:
        self._name = literals.name(schema) + b".`slave_split_branch`"
        self._channel = literals.text(channel)
        self._of_channel = b" WHERE `Channel_name`=" + self._channel

    def definition(self) -> bytes:
        """Return the statement that creates the table if it does not exist."""
        return f"""CREATE TABLE IF NOT EXISTS {self._name.decode()} (
  `Channel_name` VARCHAR(64) NOT NULL,
  `Group_number` BIGINT UNSIGNED NOT NULL,
  `Branch` INT UNSIGNED NOT NULL COMMENT 'from 0',
  PRIMARY KEY (`Channel_name`, `Group_number`, `Branch`)
) {TABLE_OPTIONS}""".encode()

    def insert(self, number: int, branch: int) -> bytes:
        """Return the statement by which a branch says that it is committed."""
        return literals.insert(
            self._name,
            [
                (b"`Channel_name`", self._channel),
                (b"`Group_number`", b"%d" % number),
                (b"`Branch`", b"%d" % branch),
            ],
        )

    def select(self, number: int) -> bytes:
        """Return the query for the committed branches of a group, one a row."""
        return b"SELECT `Branch` FROM %b%b AND `Group_number`=%d" % (
            self._name,
            self._of_channel,
            number,
        )

    def delete(self, number: int) -> bytes:
        """Return the statement that removes the rows of a group."""
        return b"DELETE FROM %b%b AND `Group_number`=%d" % (self._name, self._of_channel, number)

    def delete_all(self) -> bytes:
        """Return the statement that removes all rows of the channel."""
        return b"DELETE FROM " + self._name + self._of_channel
