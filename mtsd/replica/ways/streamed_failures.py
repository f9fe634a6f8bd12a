"""Why a streamed group could not be applied, in words for a tired person."""

from mtsd.model.errors import ApplyError, MtsdError
from mtsd.model.group import GroupOpened
from mtsd.model.outcome.failed_group import FailedGroup
from mtsd.replica.core.report import half_applied


class StreamedGroupError(MtsdError):
    """A streamed group has to be read again from the source: its transaction was rolled back."""

    def __init__(
        self, group: FailedGroup, error: MtsdError, *, cannot_be_split: bool = False
    ) -> None:
        super().__init__(
            f"{group}, which is streamed because of its size, was rolled back: {error}"
        )
        self.cannot_be_split = cannot_be_split
        self.group = self._failed = group
        self.number = group.number
        self.error = error

    def final(self, retries: int) -> ApplyError:
        """Return what stops the replica after so many retries."""
        reason = (
            f"{self.error} (at attempt {retries + 1}, the last one that"
            " replica.transaction_retries allows)"
        )
        return stopped(self._failed, reason, "Remove the cause and start again")


def streamed(number: int) -> str:
    """Return the name under which a streamed group meets an obstacle."""
    return f"streamed group {number}"


def failed_stream(opened: GroupOpened, error: int = 0) -> FailedGroup:
    """Return what is known about a streamed group before its end; `error` is a server's number."""
    return FailedGroup(opened.number, None, str(opened.gtid or ""), (), "streamed", error)


def stopped(group: FailedGroup, reason: str, remedy: str) -> ApplyError:
    """Return the error for a streamed group of which nothing is left."""
    return ApplyError(
        f"{group}, which is streamed because of its size, cannot be applied: {reason}. No later"
        f" group has been applied. `{group.show_command}` shows its rows. {remedy}."
        f" {group.way_past}",
        group=group,
    )


def stopped_half(opened: GroupOpened, reason: str, error: int = 0) -> ApplyError:
    """Return the error for a streamed group of which a part is left."""
    group = failed_stream(opened, error)
    return ApplyError(
        f"a part of {group}, which is streamed because of its size, has been applied and cannot be"
        f" rolled back, because it is in non-transactional tables: {reason}."
        f" {half_applied(group.number)},"
        f" then start again. {group.way_past}",
        group=group,
    )
