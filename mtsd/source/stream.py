"""The stream of groups from the source, over as many connections as it takes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from time import time

import structlog

from mtsd.binlog.groups.grouper import Grouper
from mtsd.binlog.groups.load_data_files import LoadDataFiles
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.binlog.groups.timestamp_defaults import TimestampDefaults
from mtsd.binlog.sql.long_text import LONGEST_READ
from mtsd.filter.filter import UNFILTERED, Filter
from mtsd.model.errors import ConnectionLostError, MtsdError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint, nothing
from mtsd.model.group import PositionReached, StreamItem
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Refused, refuse
from mtsd.model.position import NOWHERE
from mtsd.model.pulse import Pulse, Wait
from mtsd.model.temporary_tables import NOT_KNOWN
from mtsd.source.continuation import (
    Adopt,
    ByFile,
    ByGtid,
    ChannelPlace,
    continuation,
    is_renamed,
)
from mtsd.source.dump_errors import explained_dump, is_taken_over
from mtsd.source.family import SOURCES
from mtsd.source.handshake import (
    TAKEN,
    ReplicaIdentity,
    SameReplicaError,
    SourceSession,
    open_source,
    start_dump,
)
from mtsd.source.read_state import read_source_state
from mtsd.source.received import Received
from mtsd.source.rivalry import Rivalry
from mtsd.source.starts import without_missing_a_start
from mtsd.wire.backoff import Backoff
from mtsd.wire.dump_packets import event_of
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.failure import BUSY
from mtsd.wire.framing import PacketFramer
from mtsd.wire.link import Link
from mtsd.wire.traits import ServerTraits

_SILENT_PERIODS = 3

SourceCheck = Callable[[SourceSession], Awaitable[None]]
"""Looks at a source that has been connected, before anything is read."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How to read. Sizes in bytes."""

    hold_bytes: int
    """Larger groups are streamed."""
    chunk_bytes: int
    replicated: Filter = UNFILTERED
    referred_in: AbstractSet[str] | None = None
    """See `Grouper`."""


class StreamClosedError(Exception):
    """`close` was called: nothing more follows."""


class SourceChangedError(MtsdError):
    """The source is another server, which has executed everything that was received.

    Reading can continue by GTID set, but the group numbers cannot.
    """

    def __init__(self, former: str, uuid: str) -> None:
        super().__init__(f"the source is now {uuid}, before it was {former}")
        self.uuid = uuid


def _ending_with(items: Iterable[StreamItem], error: MtsdError) -> Iterator[StreamItem]:
    yield from items
    raise error


def _nothing_refused(_: GtidSet) -> None:
    return None


class SourceStream:
    """Reads the groups after a low-water mark, reconnecting whenever the source goes away.

    Call `read` repeatedly; each call returns an iterator that has to be exhausted before the
    next call. A partial group is dropped when its connection ends, and read again from its start.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        identity: ReplicaIdentity,
        settings: StreamSettings,
        mark: LowWaterMark,
        source_uuid: str,
        *,
        executed: GtidSet | None = None,
        pulse: Pulse | None = None,
        rivalry: Rivalry | None = None,
        watch: Callable[[GtidSet], None] = lambda _: None,
        link: Link | None = None,
        reached: FaultHook = nothing,
        refusal: Callable[[GtidSet], Refused | None] = _nothing_refused,
        check: SourceCheck | None = None,
    ) -> None:
        """Begin after `mark`; `executed` is as in `ChannelPlace`; `link` is told of the connection.

        `rivalry` is that of the streams before, in the same process. What `check` raises ends
        `read`. `refusal` decides, at the first connection, by what the source has executed; `watch`
        is shown that at each connection, and may raise NeedsPersonError.
        """
        self.endpoint = endpoint
        """Where to connect next time: may be changed as long as it is the same server."""
        self._identity = identity
        self.settings = settings
        """Like `endpoint`, for the next connection."""
        self._pulse = pulse or Pulse()
        self._source_uuid = source_uuid
        self._executed = executed
        self._watch = watch
        self._reached = reached
        self._refusal = refusal
        self._check = check
        self.received = Received(mark)
        self.clock_offset = 0.0
        self.server: ServerTraits | None = None
        self.heard_at: float | None = None
        """When the source has last sent something, a sign of life included; seconds since 1970."""
        self._link = link or Link()
        self._session: SourceSession | None = None
        self._grouper: Grouper | None = None
        self._temporary = mark.temporary
        self._files: LoadDataFiles | None = None
        self._timestamp_defaults: TimestampDefaults | None = None
        self.merged = MergedDatabases()
        self._news = False
        """Whether what is known about temporary tables has changed without an event."""
        self._framer: PacketFramer | None = None
        self._backoff = Backoff()
        self._rivalry = rivalry or Rivalry()
        self._is_proven = False
        """Whether this connection has brought something."""
        self._connected_at, self._next_then = 0.0, 0
        """On the event loop's clock, and the number of the next group then."""
        self._met: list[float] = []
        """When another replica with the same server_id was recently encountered."""
        self._closing = asyncio.Event()

    async def read(self) -> Iterator[StreamItem]:
        """Return what comes next; waits for it.

        Raises StreamClosedError after `close`, NeedsPersonError and ServerError if reconnecting
        cannot help.
        """
        while True:
            if self._closing.is_set():
                raise StreamClosedError
            try:
                if self._grouper is None or self._session is None or self._framer is None:
                    with self._pulse.waiting(Wait.SOURCE):
                        await self._connect()
                    if self._news:
                        self._news = False
                        place = self.received.position
                        return iter([PositionReached(place, temporary=self._temporary)])
                    continue
                deadline = _SILENT_PERIODS * self._identity.heartbeat_period
                with self._pulse.waiting(Wait.SOURCE):
                    async with asyncio.timeout(deadline):
                        data = await self._session.connection.read()
                self.heard_at = time()
                await self._reached(FaultPoint.AFTER_READ)
                framer = self._framer
                if framer.joins_much(len(data)):
                    with self._pulse.waiting(Wait.SOURCE):
                        events = await asyncio.to_thread(framer.feed, data)
                else:
                    events = framer.feed(data)
                if not self._is_proven:
                    self._prove()
                if max(map(len, events), default=0) > LONGEST_READ:
                    return await self._large(self._grouper, events)
                return self.received.items(self._grouper, events)
            except (ConnectionLostError, TimeoutError, EOFError) as error:
                dropped = self._disconnect()
                if self._closing.is_set():
                    raise StreamClosedError from None
                await self._pause(error)
                if dropped:
                    return iter(dropped)
            except SameReplicaError as error:
                dropped = self._disconnect()
                self._met_the_same(error)
                await self._pause(error)
                if dropped:
                    return iter(dropped)
            except ServerError as error:
                dropped = self._disconnect()
                least = 0.0
                if is_taken_over(error):
                    if self._rivalry.gives_way(asyncio.get_running_loop().time()):
                        raise NeedsPersonError(self._taken()) from error
                    least = self._rivalry.pause
                elif error.number not in BUSY:
                    raise NeedsPersonError(explained_dump(error, self.received)) from error
                await self._pause(error, least)
                if dropped:
                    return iter(dropped)

    async def _large(self, grouper: Grouper, events: Sequence[bytes]) -> Iterator[StreamItem]:
        """Return the items of events; long ones are read in a thread: they would stop the loop."""
        items: list[StreamItem] = []
        try:
            for event in events:
                groups: Iterable[StreamItem] = grouper.groups((event,))
                if len(event) > LONGEST_READ:
                    with self._pulse.waiting(Wait.SOURCE):
                        groups = await asyncio.to_thread(list, groups)
                items.extend(self.received.noted(grouper, groups))
        except MtsdError as error:
            return _ending_with(items, error)
        return iter(items)

    def close(self) -> None:
        """Make a waiting `read` end with StreamClosedError; read nothing more."""
        self._closing.set()
        self._link.closed()
        if self._session is not None:
            self._session.connection.close()
            self._rivalry.ended(asyncio.get_running_loop().time())

    @property
    def connected(self) -> bool:
        """Whether the source is connected and sends its binlog."""
        return self._link.connected

    def _prove(self) -> None:
        """Note that the connection has brought something."""
        self._is_proven = True
        self._backoff.reset()
        away = self._link.works()
        if away is not None:
            log.info("the source is back", source=str(self.endpoint), away_s=round(away, 1))

    async def _connect(self) -> None:
        self._link.tries()
        await self._reached(FaultPoint.BEFORE_CONNECT_SOURCE)
        session = await open_source(self.endpoint, self._identity)
        try:
            source = await read_source_state(session.connection, session.traits)
            self._watch(source.executed)
            way = continuation(self._channel(), source)
            if isinstance(way, Refused):
                raise NeedsPersonError(str(way))
            refused = self._refusal(source.executed)
            if refused is not None:
                raise NeedsPersonError(str(refused))
            if isinstance(way, Adopt):
                raise SourceChangedError(way.former, source.uuid)
            if self._check is not None:
                await self._check(session)
            if is_renamed(self.received.position, source):
                log.warning(
                    "the source's binary log has another name now: continues by GTID",
                    position=str(self.received.position),
                )
                self.received.position = NOWHERE
            goes_on = isinstance(way, ByFile) or source.by_gtid
            known = self._temporary if goes_on else NOT_KNOWN
            if isinstance(way, ByGtid) and source.by_gtid:
                way, known = await without_missing_a_start(
                    session.connection, way, self.received.position, known
                )
            now = asyncio.get_running_loop().time()
            found_another = await start_dump(
                session, self._identity, way, self._reached, returns=self._rivalry.returns(now)
            )
            self._rivalry.connected(now, found_another=found_another)
        except BaseException:
            session.connection.close()
            raise
        self._refusal = _nothing_refused
        self._session = session
        self.server = session.traits
        self.clock_offset = session.clock_offset
        # Sessions that begin after this one write nothing that is not read.
        former = self._temporary
        self._temporary = known.read_since((session.traits.server_id, session.connection.thread_id))
        self._news = self._temporary is not former
        self._framer = PacketFramer(session.connection.next_sequence, event_of)
        self._grouper = Grouper(
            start=self.received.position,
            next_number=self.received.next_number,
            checksums=session.traits.binlog_checksum and not session.traits.binlog_in_engine,
            in_place=not session.traits.binlog_in_engine,
            leaving_out=way.gtids.places() if isinstance(way, ByGtid) else (),
            hold_bytes=self.settings.hold_bytes,
            chunk_bytes=self.settings.chunk_bytes,
            replicated=self.settings.replicated,
            temporary=self._temporary,
            fold_case=session.traits.lower_case_table_names,
            files=self._files if goes_on else None,
            timestamp_defaults=self._known_of_sessions(session.traits),
            merged=self.merged,
            referred_in=self.settings.referred_in,
        )
        self.received.connected()
        self._is_proven = False
        self._link.up()
        self._connected_at, self._next_then = now, self.received.next_number
        log.info(
            "connected to the source",
            source=str(self.endpoint),
            version=session.connection.server_version,
            by="file and position" if isinstance(way, ByFile) else "GTID set",
            position=str(self.received.position),
        )

    def _known_of_sessions(self, source: ServerTraits) -> TimestampDefaults | None:
        """Return what is known of a MySQL's sessions; each statement of a MariaDB says it."""
        if SOURCES[source.server.flavour].states_timestamp_defaults:
            return None
        usual = source.explicit_defaults_for_timestamp
        if self._timestamp_defaults is None or self._timestamp_defaults.usual is not usual:
            self._timestamp_defaults = TimestampDefaults(usual)
        return self._timestamp_defaults

    def _channel(self) -> ChannelPlace:
        executed = self.received.gtids
        if executed is not None and self._executed is not None:
            executed = executed.union(self._executed)
        # Whether that covers everything is decided again after this run, if it matters.
        return ChannelPlace(
            self.received.position, self.received.gtids, self._source_uuid, executed
        )

    def _disconnect(self) -> list[StreamItem]:
        dropped: list[StreamItem] = []
        if self._grouper is not None:
            dropped += self._grouper.abandon()
            self._temporary = self._grouper.temporary
            self._files = self._grouper.files
        if self._session is not None:
            self._session.connection.close()
            self._rivalry.ended(asyncio.get_running_loop().time())
            lasted = asyncio.get_running_loop().time() - self._connected_at
            self._backoff.ended(lasted, of_use=self.received.next_number > self._next_then)
        self._session = self._grouper = self._framer = None
        return dropped

    async def _pause(self, error: Exception, least: float = 0.0) -> None:
        pause = max(self._backoff.next_pause(), least)
        reason = str(error) or "it has been silent for too long"
        number = error.number if isinstance(error, ServerError) else 0
        if self._link.lost(number, reason, pause):
            log.warning(
                "source not connected", reason=reason, again_in_s=round(pause, 2),
                attempts=self._link.attempts, position=str(self.received.position),
            )  # fmt: skip
        with self._pulse.waiting(Wait.SOURCE), contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), pause)

    def _met_the_same(self, error: SameReplicaError) -> None:
        """Raise an error for a person unless another replica has only just got in the way."""
        now = asyncio.get_running_loop().time()
        deadline = _SILENT_PERIODS * self._identity.heartbeat_period
        self._met = [when for when in self._met if now - when < _MET_LATELY_S + deadline]
        self._met.append(now)
        # The source notices that a former connection is gone when it next sends something on it.
        if len(self._met) > _OFTEN and now - self._met[0] > min(deadline, _MET_LATELY_S):
            raise NeedsPersonError(str(error)) from error

    def _taken(self) -> str:
        identity = self._identity
        return str(
            refuse(TAKEN, address=self.endpoint, server_id=identity.server_id, uuid=identity.uuid)
        )


_OFTEN = 2
_MET_LATELY_S = 60.0
