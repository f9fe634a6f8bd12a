"""Groups of row events as statements for the target: what one target transaction consists of."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from pybase64 import b64encode

from mtsd.apply.position.worker_info import WorkerRowChange
from mtsd.apply.rows.row_joining import LARGEST, joined
from mtsd.apply.rows.unchecked_updates import UncheckedUpdates
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.rows import STMT_END
from mtsd.binlog.groups.rewrite import statements_of
from mtsd.model.errors import NeedsPersonError
from mtsd.model.group import Group
from mtsd.model.group_keys import NO_KEYS
from mtsd.model.step import Rows, Step
from mtsd.schedule.batches.combining import writes_system_tables

BASE64_SHARE: Final = 0.70
"""Row bytes that a BINLOG statement may hold, as a share of max_allowed_packet (limit: 0.74)."""
LARGEST_COMMAND_SHARE: Final = 0.96
"""Bytes of a command, as a share of max_allowed_packet."""
ENOUGH = 8 << 20
"""Bytes of a command to which nothing more is added: larger sends only cost memory."""


class RowTooLargeError(NeedsPersonError):
    """The target's max_allowed_packet is too small for a row, or for the rows of one event."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(
            f"a row event needs a statement of {length} bytes, more than the target accepts"
            f" ({limit}): raise max_allowed_packet on the target"
        )


@dataclass(frozen=True, slots=True)
class Command:
    """Statements that go to the server in one COM_QUERY: it stops at the first error."""

    sql: bytes
    statements: int


class Setting(NamedTuple):
    """A statement between those of rows, which sets something for the next ones."""

    sql: bytes


@dataclass(frozen=True, slots=True)
class Bundle:
    """One target transaction, ready to be sent; the commands of a large one are created lazily.

    Or several `transactions`, each a single statement, in one command: if one of them fails, the
    server runs none of those after it. `table_maps` are the distinct table maps of its rows, which
    are those of `groups`.
    `ending` are the statements that commit it, where they are sent separately.
    """

    format_description: bytes
    commands: Iterable[Command]
    table_maps: frozenset[bytes]
    transactions: int = 1
    groups: Sequence[Group] = ()
    ending: tuple[bytes, ...] = ()

    @property
    def steps(self) -> Iterator[Step]:
        """The steps of its groups, one after another."""
        return chain.from_iterable(group.steps for group in self.groups)

    @property
    def is_single_statements(self) -> bool:
        """Whether each of its transactions is a single statement, which commits by itself."""
        commands = self.commands
        if not isinstance(commands, tuple) or len(commands) != 1:
            return False
        return bool(commands[0].statements == self.transactions)


def together(bundles: Sequence[Bundle]) -> Bundle:
    """Merge bundles that are each a single statement, and all have the same format."""
    if len(bundles) == 1:
        return bundles[0]
    sql = b";".join(command.sql for bundle in bundles for command in bundle.commands)
    tables = bundles[0].table_maps.union(*(bundle.table_maps for bundle in bundles))
    command = Command(sql, len(bundles))
    groups = list(chain.from_iterable(bundle.groups for bundle in bundles))
    return Bundle(bundles[0].format_description, (command,), tables, len(bundles), groups)


_TABLE_MAP: Final = EventType.TABLE_MAP_EVENT.value
_FLAGS_AT: Final = 25
_BINLOG: Final = b"BINLOG '"
_END: Final = b"'"
_NEXT: Final = b";"
_ENCODED_AT_ONCE: Final = 3 << 20
"""Bytes, in threes: so the pieces can be put together."""


def binlog_statement(events: bytes) -> bytes:
    """Return the BINLOG statement of plain events."""
    return b"".join((_BINLOG, b64encode(events), _END))


def _encoded(events: bytes) -> Iterator[bytes]:
    """Yield the text of events, piece by piece: other threads wait while one is made."""
    if len(events) <= _ENCODED_AT_ONCE:
        yield b64encode(events)
        return
    view = memoryview(events)
    for at in range(0, len(events), _ENCODED_AT_ONCE):
        yield b64encode(view[at : at + _ENCODED_AT_ONCE])


def encoded_length(length: int) -> int:
    """Return the length of the BINLOG statement for `length` bytes of events."""
    return (length + 2) // 3 * 4 + len(_BINLOG) + len(_END)


def row_statements(
    groups: Sequence[Group],
    chunk_bytes: int,
    change: WorkerRowChange | None = None,
    table_maps: set[bytes] | None = None,
    *,
    by_clock: bool = False,
    unchecked: UncheckedUpdates | None = None,
) -> Iterator[bytes]:
    """Yield the events of groups of rows in as few statements as possible, each of `chunk_bytes`.

    Consecutive groups whose row events all have the same flags are merged, and those whose keys are
    known are `joined`, with `by_clock` all of them, and what is `unchecked` follows apart. Of a
    group whose events differ in flags, the source's statements are merged, except for one whose own
    events do: a cascade on a MySQL 9.7. `change`, the worker's row, goes into the last statement;
    after such a one, and after changes of system tables, which cannot share a statement with other
    tables (error 1428), it is a statement of its own. The table maps found are added to
    `table_maps`.
    """
    largest = min(LARGEST, chunk_bytes // 4)
    run: list[bytes] = []
    keyed: list[Group] = []
    flags: int | None = None
    separate = False
    for group in groups:
        separate = writes_system_tables(group)
        row_flags = group.row_flags
        if row_flags is None and not separate:
            run.extend(joined(keyed, largest, by_clock=by_clock))
            keyed = []
            for of_its_events, events in _source_statements(group.rows):
                if of_its_events is None or of_its_events != flags:
                    parts = _apart(unchecked, run, flags, largest)
                    yield from _merged(parts, chunk_bytes, table_maps)
                    run = []
                    flags = of_its_events
                run.extend(events)
            continue
        if separate or row_flags != flags:
            run.extend(joined(keyed, largest, by_clock=by_clock))
            keyed = []
            yield from _merged(_apart(unchecked, run, flags, largest), chunk_bytes, table_maps)
            run = []
            flags = row_flags
        if flags is not None and not separate and (by_clock or group.keys is not NO_KEYS):
            keyed.append(group)
            continue
        # Nearly every group is one step of rows.
        first = group.steps[0]
        rows = first.events if len(group.steps) == 1 and type(first) is Rows else group.rows
        if separate:
            yield from statements_of(rows, chunk_bytes, merge=False, table_maps=table_maps)
        else:
            run.extend(joined(keyed, largest, by_clock=by_clock))
            keyed = []
            run.extend(rows)
    run.extend(joined(keyed, largest, by_clock=by_clock))
    if flags is None:
        yield from _merged([(0, run)], chunk_bytes, table_maps)
        run = []
    parts = _apart(unchecked, run, flags, largest)
    if change is not None and not separate:
        more, last = parts[-1]
        last.extend(change.events(groups[-1].rows[-1], (flags or 0) | more))
    yield from _merged(parts, chunk_bytes, table_maps)
    if change is not None and separate:
        yield b"".join(change.events(groups[-1].rows[-1], 0))


def _source_statements(events: Iterable[bytes]) -> Iterator[tuple[int | None, list[bytes]]]:
    """Yield the row events and table maps of each statement of the source, after their flags.

    These are without STMT_END; None if they differ.
    """
    statement: list[bytes] = []
    found: set[int] = set()
    for event in events:
        statement.append(event)
        if event[4] == _TABLE_MAP:
            continue
        flags = event[_FLAGS_AT] | event[_FLAGS_AT + 1] << 8
        found.add(flags & ~STMT_END)
        if flags & STMT_END:
            yield (found.pop() if len(found) == 1 else None), statement
            statement = []
            found = set()
    if found:
        yield (found.pop() if len(found) == 1 else None), statement


def _apart(
    unchecked: UncheckedUpdates | None, run: list[bytes], flags: int | None, largest: int
) -> Sequence[tuple[int, list[bytes]]]:
    """Return the run in parts, at least one, each with the flags that its events get besides."""
    if unchecked is None or not run or flags is None:
        return [(0, run)]
    return unchecked.apart(run, flags, largest)


def _merged(
    parts: Iterable[tuple[int, list[bytes]]], chunk_bytes: int, table_maps: set[bytes] | None
) -> Iterator[bytes]:
    """Yield the statements of the parts of a run."""
    for more, part in parts:
        yield from statements_of(
            part, chunk_bytes, merge=True, table_maps=table_maps, more_flags=more
        )


def table_maps(events: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the Table_map events among events."""
    return (event for event in events if event[4] == _TABLE_MAP)


def commands(
    before: Sequence[bytes],
    rows: Iterable[bytes | Setting],
    after: Sequence[bytes],
    limit: int,
) -> Iterator[Command]:
    """Yield commands of SQL and BINLOG statements in order, each of at most `limit` bytes.

    `rows` are the events of BINLOG statements, and settings between them.
    All of `after` is in the last one. Yields nothing if there is no statement: a server answers
    an empty one with an error. Raises RowTooLargeError if one statement exceeds `limit`.
    """
    # Large statements are copied only once: when all pieces of a command are joined.
    pieces: list[bytes] = []
    size = count = 0
    for each in before:
        pieces += (each, _NEXT)
        size += len(each) + 1
        count += 1
    for item in rows:
        statement: tuple[bytes, ...]
        if isinstance(item, Setting):
            statement = (item.sql, _NEXT)
            length = len(item.sql)
        else:
            statement = (_BINLOG, *_encoded(item), _END, _NEXT)
            length = encoded_length(len(item))
        if count and (size + length > limit or size >= ENOUGH):
            yield Command(b"".join(pieces[:-1]), count)
            pieces = []
            size = count = 0
        if length > limit:
            raise RowTooLargeError(length, limit)
        pieces += statement
        size += length + 1
        count += 1
    if count and size + sum(map(len, after)) + len(after) > limit:
        yield Command(b"".join(pieces[:-1]), count)
        pieces = []
        count = 0
    for each in after:
        pieces += (each, _NEXT)
        count += 1
    if count:
        yield Command(b"".join(pieces[:-1]), count)


def each_after(commands: Iterable[Command], before: bytes) -> Iterator[Command]:
    """Yield commands with the statement `before` in front of each of their BINLOG statements."""
    for command in commands:
        # No statement beside them has a semicolon in it, and base64 has none.
        statements: list[bytes] = []
        for statement in command.sql.split(b";"):
            if statement.startswith(b"BINLOG"):
                statements.append(before)
            statements.append(statement)
        yield Command(b";".join(statements), len(statements))
