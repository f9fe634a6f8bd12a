"""What is known about the source's temporary tables at the place that a stream has reached."""

from mtsd.binlog.events.event_reader import EventReader
from mtsd.model.position import Position
from mtsd.model.temporary_tables import NONE_OPEN, TemporaryTables


class KnownTemporaryTables:
    """Follows a stream that begins at `start`, where the tables `known` were those.

    A dump by GTID may begin before that place; `reader` counts the gaps that it has met.
    """

    __slots__ = ("_gaps", "_reader", "_start", "known")

    def __init__(self, known: TemporaryTables, start: Position, reader: EventReader) -> None:
        self.known = known
        self._start = start
        self._reader = reader
        self._gaps = 0

    @property
    def has_start(self) -> bool:
        """Whether the place at which the stream begins was known."""
        return bool(self._start.file)

    @property
    def are_those_of_start(self) -> bool:
        """Whether the position is not after the start, where a dump by GTID may begin."""
        return self.has_start and self._reader.position <= self._start

    @property
    def has_gap(self) -> bool:
        """Whether events have been left out, unknown, since `after_gap`."""
        return self._gaps != self._reader.gaps

    def after_gap(self) -> TemporaryTables | None:
        """Return what is known if events have been left out unknown, and that has changed it."""
        if not self.has_gap:
            return None
        self._gaps = self._reader.gaps
        return None if self.are_those_of_start else self.news(self.known.with_gap())

    def after_start(self) -> TemporaryTables | None:
        """Return what is known after a start of the source, if that is later and changes it."""
        return None if self.are_those_of_start else self.news(NONE_OPEN)

    def after_previous_gtids(self, *, first: bool) -> TemporaryTables | None:
        """Return what is known after an event of what came before a file, if that changes it.

        Asked by GTID, a MariaDB conceals that it was started with its `first` file.
        """
        complete = not self.has_gap and self.has_start
        known = self.after_gap()
        return self.after_start() if first and complete else known

    def news(self, known: TemporaryTables) -> TemporaryTables | None:
        """Note what is known from here on; return it if it has changed."""
        if known == self.known:
            return None
        self.known = known
        return known
