"""What a daemon reports about itself: the schema of `GET /status` and of `mtsd status --json`.

Times are in seconds, sizes in bytes; a list in JSON is a tuple here.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Literal

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from mtsd.control.place import NOWHERE, Place
from mtsd.control.server_status import (
    NO_CONNECTIONS,
    NO_SOURCE_LOG,
    ConnectionsStatus,
    SourceLogStatus,
)
from mtsd.control.stop_status import InDoubtStatus, LastStopStatus, SkippedStatus, StoppedStatus

State = Literal[
    "starting", "connecting", "recovering", "running", "waiting", "delayed", "standby", "stopping",
    "stopped", "failed",
]  # fmt: skip
"""What the replica is doing.

connecting: a server is not connected, and is tried again. waiting: the target takes no change, and
`doing` says why. standby: the channel was handed over, and it begins once it comes back.
"""


@dataclass(frozen=True, slots=True)
class TargetWaitStatus:
    """A worker that waits for the target's answer, for `seconds`, to a statement of that kind.

    `connection` is its session there. `group` is the number of the group that it is at, 0 for one
    that is applied while it is read; `kind` and `databases` are the group's.
    """

    seconds: float
    statement: str
    connection: int
    group: int = 0
    kind: str = ""
    databases: str = ""


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker. Counts are since the replica began to run (`Status.run_seconds`)."""

    id: int
    state: str
    """What it is doing, in a word: idle, waiting, applying, frozen."""
    queue_groups: int = 0
    """Groups in its queue, including those that it is applying."""
    queue_bytes: int = 0
    groups: int = 0
    """Groups that it committed."""
    transactions: int = 0
    """Target transactions that it committed them in."""
    retries: int = 0
    last: Place = NOWHERE
    """The end of the last group that it committed."""
    busy_ratio: float = 0.0
    """The fraction of the time, 0 to 1, in which it had work."""
    target_wait: TargetWaitStatus | None = None
    """What it waits for at the target; None if it does not."""
    waits_for: str = ""
    """What it waits for: to commit, or to begin the first group of its queue, one of the causes in
    `waits`; `target`, where that has not answered for a second; or what keeps the target from
    taking a change. "" if nothing."""
    gave_way: int = 0
    """Target transactions applied before their turn and rolled back, because an earlier group
    needed a lock of theirs: with `consistency = "any_time"`."""


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition of the schedule: a database or table, by parallel_type."""

    name: str
    worker: int | None
    """The worker that it is assigned to; None while no group of it is pending."""
    pending_groups: int = 0
    lag_seconds: float = 0.0
    """Age of its oldest group that is not yet applied; 0 if there is none."""
    groups: int = 0
    """Groups of it since the replica began to run."""


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """One database that groups update, under every policy."""

    name: str
    pending_groups: int = 0
    lag_seconds: float = 0.0
    """Age of its oldest group that is queued and not yet applied; 0 if there is none."""
    groups: int = 0
    """Groups that were applied since the daemon began."""


@dataclass(frozen=True, slots=True)
class TotalsStatus:
    """Sums over all workers since the daemon began; `waits` as in `Status`."""

    groups: int = 0
    transactions: int = 0
    retries: int = 0
    gave_way: int = 0
    skipped: int = 0
    """Groups skipped because of `skip_errors`."""
    skipped_by_hand: int | None = None
    """What people have skipped on this channel, ever; None until the target has been read."""
    busy_seconds: float = 0.0
    waits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgesStatus:
    """How many groups were applied how long after their commit on the source.

    `groups` has a number for each of `bounds`, in seconds: those that took as long or less, and
    longer than the bound before. Its last number is for those that took longer than all bounds.
    """

    bounds: tuple[float, ...] = ()
    groups: tuple[int, ...] = ()
    sum_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SemiSyncStatus:
    """What the source is told of what is applied (`source.semi_sync`).

    `state`: off, not asked (the source cannot wait), acknowledging, withdrawn, not connected.
    `latencies`: from a transaction's arrival to its acknowledgement.
    """

    state: str = "off"
    withdrawals: int = 0
    latencies: AgesStatus = AgesStatus()


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """The process; `started` in ISO 8601. `reload_refused`: its file is not what is in force."""

    version: str = ""
    compiled: bool = False
    pid: int = 0
    started: str = ""
    reload_refused: bool = False
    tasks: int = 0
    """Coroutines that run or wait: it does not grow."""


@dataclass(frozen=True, slots=True)
class DistributionStatus:
    """What a person decides about the distribution, as `[replica] bind`, `pin` and `weigh`.

    `frozen` are the Ids of workers that begin nothing. `until_the_daemon_ends` names those of these
    parts that were set over the status socket, and not in the configuration.
    """

    bind: tuple[tuple[str, ...], ...] = ()
    pin: tuple[tuple[str, int], ...] = ()
    weigh: tuple[tuple[str, int], ...] = ()
    frozen: tuple[int, ...] = ()
    until_the_daemon_ends: tuple[str, ...] = ()

    @classmethod
    def from_document(cls, document: Mapping[str, object]) -> "DistributionStatus":
        """Parse a JSON object. Raises ValueError."""
        return _of_distribution().validate_python(document)


@dataclass(frozen=True, slots=True)
class Status:
    """The whole replica."""

    state: State
    source: str
    """Address of the server that is read, in the format of `Endpoint`."""
    target: str
    channel: str = ""
    received: Place = NOWHERE
    """How far groups have been read."""
    executed: Place = NOWHERE
    """The low-water mark: everything up to here has committed; its `gtid` is a set."""
    lag_seconds: float | None = None
    """Now minus the commit time of the oldest group that is not yet applied, 0.0 if there is
    none; None while the source is not connected."""
    pending_groups: int = 0
    """Read and not yet applied; what the delay holds back counts."""
    pending_bytes: int = 0
    last_error: str | None = None
    """What is wrong now, or has stopped the replica; None once it is over."""
    workers: tuple[WorkerStatus, ...] = ()
    partitions: tuple[PartitionStatus, ...] = ()
    waits: Mapping[str, float] = field(default_factory=dict)
    """Seconds by cause, since the replica began to run: how long the next group of the stream could
    not be queued (`gaq_full`, `pending_bytes`, `streamed`), how long workers that had nothing else
    to do waited to begin one (`partition`, `dependency`, `alone`, `frozen`), and how long they
    waited for their turn (`commit_order`), all workers together."""
    distribution: DistributionStatus = DistributionStatus()
    reading_waits_for: str = ""
    """What keeps the next group of the stream from being queued now, one of the causes in `waits`;
    "" if nothing does."""
    in_doubt: tuple[InDoubtStatus, ...] = ()
    stopped_at: StoppedStatus | None = None
    """Only while no daemon applies; `in_doubt` only if the target was read."""
    skipped: tuple[SkippedStatus, ...] = ()
    """Nobody skips a group while a daemon is running: it knows those that were on record when it
    began."""
    doing: str = ""
    """What a start is at, or what is waited for, in words; "" while it just runs."""
    run_seconds: float = 0.0
    """Since the replica began to run: when the daemon started, or returned to a server."""
    cpu_seconds: float = 0.0
    """What the daemon's process has used of processors in that time."""
    batch_groups: int = 0
    """How many groups may be combined: the setting, or 1 where they keep their own GTIDs."""
    filter: str = ""
    """The filter rules in force, in one line; "" if everything is replicated."""
    remaining_delay: float = 0.0
    """Seconds until the next group is due, while `replica.delay` holds it back."""
    prepared_transactions: int = 0
    """XA transactions that are prepared, and that the source has neither committed nor rolled back
    as far as it has been read."""
    connections: ConnectionsStatus = NO_CONNECTIONS
    lag_beyond_delay: float | None = None
    """What of the lag is more than `replica.delay`."""
    last_stop: LastStopStatus | None = None
    """Only while no daemon is running, or an error has stopped it and it stays; None if the last
    one did not say how it ended."""
    warnings: tuple[str, ...] = ()
    """What may damage data later on, and does not yet: the server's own replica, and the like."""
    daemon: DaemonStatus = DaemonStatus()
    totals: TotalsStatus = TotalsStatus()
    databases: tuple[DatabaseStatus, ...] = ()
    ages: AgesStatus = AgesStatus()
    source_log: SourceLogStatus = NO_SOURCE_LOG
    semi_sync: SemiSyncStatus = SemiSyncStatus()
    in_doubt_groups: int | None = None
    """How many groups have an in-doubt record, as of a few seconds ago: as a definition has while
    it runs. None while nothing is applied."""
    delay: int = 0
    """`replica.delay`, in seconds."""
    parallel_type: str = ""
    """The policy in force; "" while there is no run."""
    parallel_type_because: str = ""
    """Why, if `replica.parallel_type` is auto; "" if a person has named it."""

    def to_json(self, *, indent: int | None = None) -> str:
        """Serialize it as a JSON object."""
        try:
            return _of_status().dump_json(self, indent=indent).decode()
        except PydanticSerializationError:
            # A name that is not UTF-8 has half characters, which no JSON text can hold.
            text = json.dumps(asdict(self), indent=indent, ensure_ascii=False)
            return text.encode("utf-8", "replace").decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Status":
        """Parse the result of `to_json`; fields of a later version are ignored.

        Raises ValueError.
        """
        return _of_status().validate_json(text)


# Building these takes a tenth of the daemon's start: it is done when the first one asks.
@cache
def _of_status() -> TypeAdapter[Status]:
    return TypeAdapter(Status)


@cache
def _of_distribution() -> TypeAdapter[DistributionStatus]:
    return TypeAdapter(DistributionStatus)
