"""The group that a replica stops at, as far as it is known: what `mtsd skip` may skip."""

from dataclasses import dataclass

from mtsd.model.group import Group
from mtsd.model.outcome.command import command
from mtsd.model.position import Position


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """A group that cannot be applied.

    `end` is None if the group is streamed and its end has not been read; `gtid` is its GTID on
    the source, "" if it has none. `error` is the server's error number, or 0 if mtsd itself
    refuses the group. `later_applied`: groups after it have already been applied.
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
        """Return what is known about a complete group."""
        gtid = str(group.gtid or "")
        return cls(
            group.number, group.end, gtid, group.databases, group.kind.value, error, later_applied
        )

    @property
    def skip_command(self) -> str:
        """The command that skips it."""
        return command("skip", "--group", str(self.number), "--reason", "TEXT")

    @property
    def show_command(self) -> str:
        """The command that lists what it changes, from the source's binary log."""
        which = ("--gtid", self.gtid) if self.gtid else ("--group", str(self.number))
        return command("binlog", "--rows", *which)

    @property
    def way_past(self) -> str:
        """The sentence that ends the message of an error which stops the replica."""
        return (
            f"If this one group is never to be applied, `{self.skip_command}` skips it, and the"
            " next start continues after it"
        )

    def __str__(self) -> str:
        """Return it for a message."""
        ends = self.end.as_ending if self.end is not None else ""
        return f"group {self.number}{ends}, GTID {self.gtid or 'none'}"
