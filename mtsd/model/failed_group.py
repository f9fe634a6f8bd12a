"""The group that a replica stops on, as far as it is known: what `mtsd skip` may pass over."""

from dataclasses import dataclass

from mtsd.model.group import Group
from mtsd.model.position import Position


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """A group that cannot be applied.

    `end` is None where the group is streamed and its end has not been read; `gtid` is its GTID on
    the source, "" where it has none. `error` is the number of the server's error, 0 where mtsd
    itself refuses the group. `later_applied`: groups behind it have been applied already.
    """

    number: int
    end: Position | None
    gtid: str
    databases: tuple[str, ...]
    kind: str
    error: int = 0
    later_applied: bool = False

    @classmethod
    def of(cls, group: Group, *, error: int = 0, later_applied: bool = False) -> "FailedGroup":
        """Return what is known of a complete group."""
        gtid = str(group.gtid or "")
        return cls(
            group.number, group.end, gtid, group.databases, group.kind.value, error, later_applied
        )

    @property
    def way_past(self) -> str:
        """The sentence that ends the message of an error that stops the replica."""
        return (
            "Where this one group is never to be applied, `mtsd skip --group"
            f" {self.number} --reason TEXT` passes over it, and the next start goes on behind it"
        )

    def __str__(self) -> str:
        """Return it for a message."""
        ends = f", ending at {self.end}" if self.end is not None else ""
        return f"group {self.number}{ends}, GTID {self.gtid or 'none'}"
