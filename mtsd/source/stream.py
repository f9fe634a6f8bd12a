"""The stream of groups from the source, over as many connections as it takes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from time import time

import structlog

from mtsd.binlog.groups.grouper import Grouper
from mtsd.binlog.groups.load_data_files import LoadDataFiles
from mtsd.binlog.groups.merged_databases import MergedDatabases
from mtsd.binlog.groups.timestamp_defaults import TimestampDefaults
from mtsd.model.errors import ConnectionLostError, MtsdError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint, nothing
from mtsd.model.group import PositionReached, StreamItem
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import NOWHERE, Position
from mtsd.model.pulse import Pulse, Wait
from mtsd.model.temporary_tables import NOT_KNOWN
from mtsd.source.continuation import Adopt, ByFile, ByGtid, ChannelPlace, continuation, is_renamed
from mtsd.source.dump_errors import explained_dump, heard, is_taken_over
from mtsd.source.family import SOURCES
from mtsd.source.handshake import (
    ReplicaIdentity,
    SameReplicaError,
    SourceSession,
    can_wait,
    open_source,
    start_dump,
    taken_over,
)
from mtsd.source.long_events import any_takes_long, takes_long
from mtsd.source.read_state import read_source_state
from mtsd.source.received import Received
from mtsd.source.rivalry import Rivalry
from mtsd.source.semi_sync import SemiSync
from mtsd.source.starts import without_missing_a_start
from mtsd.source.stream_end import SourceChangedError, StreamClosedError
from mtsd.source.stream_settings import StreamSettings
from mtsd.wire.backoff import Backoff
from mtsd.wire.dump_packets import acknowledgement, event_of
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.failure import BUSY
from mtsd.wire.framing import PacketFramer
from mtsd.wire.link import Link
from mtsd.wire.refusal import number_and_reason
from mtsd.wire.traits import ServerTraits

_MOMENT_S = 0.02

SourceCheck = Callable[[SourceSession], Awaitable[None]]
"""Looks at a source that has been connected, before anything is read."""

log = structlog.get_logger(__name__)


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
        semi_sync: SemiSync | None = None,
    ) -> None:
        """Begin after `mark`; `executed` is as in `ChannelPlace`; `link` is told of the connection.

        `rivalry` is that of the streams before, in the same process. What `check` raises ends
        `read`. `refusal` decides, at the first connection, by what the source has executed; `watch`
        is shown that at each connection, and may raise NeedsPersonError. `semi_sync` decides what
        the source is told of what is applied; None: nothing.
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
        self.semi_sync = semi_sync
        self._is_made_anew = False
        """Whether its connection was ended on purpose, and the next one need not wait."""
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
                with self._pulse.waiting(Wait.SOURCE):
                    silence = self._identity.longest_silence
                    data = await heard(self._session.connection, silence)
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
                if any_takes_long(events):
                    items = await self._large(self._grouper, events)
                else:
                    items = self.received.items(self._grouper, events)
                return items if self.semi_sync is None else self._noted(self.semi_sync, items)
            except (ConnectionLostError, TimeoutError, EOFError) as error:
                dropped = self._disconnect()
                if self._closing.is_set():
                    raise StreamClosedError from None
                await self._pause(error)
                if dropped:
                    return iter(dropped)
            except SameReplicaError as error:
                dropped = self._disconnect()
                now = asyncio.get_running_loop().time()
                if self._rivalry.is_in_the_way(now, self._identity.longest_silence):
                    raise NeedsPersonError(str(error)) from error
                await self._pause(error)
                if dropped:
                    return iter(dropped)
            except ServerError as error:
                dropped = self._disconnect()
                least = 0.0
                if is_taken_over(error):
                    if self._rivalry.gives_way(asyncio.get_running_loop().time()):
                        raise NeedsPersonError(
                            str(taken_over(self.endpoint, self._identity))
                        ) from error
                    least = self._rivalry.pause
                elif error.number not in BUSY:
                    raise NeedsPersonError(explained_dump(error, self.received)) from error
                await self._pause(error, least)
                if dropped:
                    return iter(dropped)

    async def _large(self, grouper: Grouper, events: Sequence[bytes]) -> Iterator[StreamItem]:
        """Return the items of events, of which some are read in a thread."""
        items: list[StreamItem] = []
        try:
            for event in events:
                groups: Iterable[StreamItem] = grouper.groups((event,))
                if takes_long(event):
                    with self._pulse.waiting(Wait.SOURCE):
                        groups = await asyncio.to_thread(list, groups)
                items.extend(self.received.noted(grouper, groups))
        except MtsdError as error:
            return _ending_with(items, error)
        return iter(items)

    def _noted(self, semi_sync: SemiSync, items: Iterator[StreamItem]) -> Iterator[StreamItem]:
        if self._framer is not None:
            semi_sync.asks(self._framer.wanted)
            self._framer.wanted.clear()
        return semi_sync.noted(items, asyncio.get_running_loop().time())

    def acknowledge(self, position: Position) -> None:
        """Tell the source that everything up to a place of its binlog is on the target."""
        if self._session is not None:
            self._session.connection.notify(acknowledgement(position))

    def connect_anew(self) -> None:
        """End the connection; what comes next is read over another one, at once."""
        if self._session is not None:
            self._is_made_anew = True
            self._session.connection.close()

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
        asks = self.semi_sync is not None and await self._may_be_waited_for(self.semi_sync)
        session = await open_source(self.endpoint, self._identity)
        try:
            file = self.received.position.file
            source = await read_source_state(session.connection, session.traits, file=file)
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
            waits = asks and await can_wait(session.connection)
            now = asyncio.get_running_loop().time()
            found_another = await start_dump(
                session, self._identity, way, self._reached,
                returns=self._rivalry.returns(now), semi_sync=waits,
            )  # fmt: skip
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
        self._framer = PacketFramer(session.connection.next_sequence, event_of, semi_sync=waits)
        if self.semi_sync is not None:
            self.semi_sync.connected(asked=waits)
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

    async def _may_be_waited_for(self, semi_sync: SemiSync) -> bool:
        """Return whether the source may wait for this replica, see `SemiSync.begins`."""
        now = asyncio.get_running_loop().time
        deadline = now() + semi_sync.limit
        with self._pulse.waiting(Wait.EARLIER_GROUPS):
            while not semi_sync.begins(self.received.next_number, now(), deadline):
                if semi_sync.is_withdrawn or self._closing.is_set():
                    return False
                await asyncio.sleep(_MOMENT_S)
        return True

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
            self.received.position, self.received.gtids, self._source_uuid, executed,
            begun=self.received.begun,
        )  # fmt: skip

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
        if self.semi_sync is not None:
            self.semi_sync.disconnected()
        self._session = self._grouper = self._framer = None
        return dropped

    async def _pause(self, error: Exception, least: float = 0.0) -> None:
        if self._is_made_anew:
            self._is_made_anew = False
            return
        pause = max(self._backoff.next_pause(), least)
        number, reason = number_and_reason(error)
        if self._link.lost(number, reason, pause):
            log.warning(
                "source not connected", reason=reason, again_in_s=round(pause, 2),
                attempts=self._link.attempts, position=str(self.received.position),
            )  # fmt: skip
        with self._pulse.waiting(Wait.SOURCE), contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), pause)
