"""The session state that rows are applied in where the target computes something from them.

A server's own replica takes over what the BEGIN of a transaction says, and for the rest it has its
global settings. So it is here, but only around the rows of tables from which something is computed
(`mtsd.apply.tables.computed_tables`): those of other tables are the same in every state, and a
session without rows has its pinned state.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from mtsd.apply.rows.bundle import Setting
from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.session_state import changes
from mtsd.apply.sql.literals import blob
from mtsd.model.group import Group
from mtsd.model.server import ServerVersion
from mtsd.model.session import (
    ALLOW_INVALID_DATES,
    COMPUTING_MODES,
    NO_UNSIGNED_SUBTRACTION,
    TIME_TRUNCATE_FRACTIONAL,
    RowState,
)
from mtsd.model.step import state_of_rows

_NO_AUTO_VALUE_ON_ZERO: Final = 1 << 19
_STRICT_ALL_TABLES: Final = 1 << 22
_OF_SQL: Final = _NO_AUTO_VALUE_ON_ZERO | _STRICT_ALL_TABLES | ALLOW_INVALID_DATES
"""What sessions have in which rows are SQL."""
_BESIDE_SQL: Final = NO_UNSIGNED_SUBTRACTION | TIME_TRUNCATE_FRACTIONAL
"""What does not change the meaning of their statements."""
_VARIABLES: Final = (b"sql_mode", b"time_zone", b"lc_time_names")
_CLIENT: Final = b"character_set_client"
_SINGLE_BYTE: Final = b"SET @@session.character_set_client=latin1"


def keeps_zones(server: ServerVersion, newer: str) -> bool:
    """Return whether rows as SQL can be written in another time zone than UTC on a server.

    It has to accept TIMESTAMPs of UTC in each. That the `newer` row wins is found out in UTC.
    """
    return server.number >= TARGETS[server.flavour].offsets_since and not newer


class RowStates:
    """Those of sessions with the pinned state `own`; `as_sql`: rows are SQL statements."""

    def __init__(
        self, own: dict[bytes, bytes], server: ServerVersion, *, as_sql: bool = False
    ) -> None:
        self.own: Final = {name: own[name] for name in _VARIABLES}
        """The pinned state, of the variables that count."""
        texts = {} if as_sql else {_CLIENT: own[_CLIENT]}
        self.back: Final = changes({}, self.own | texts)
        """The statement that leads from any state to it."""
        self._back_from_single: Final = changes({}, texts)
        self._always = _OF_SQL if as_sql else 0
        family = TARGETS[server.flavour]
        modes = (_BESIDE_SQL if as_sql else COMPUTING_MODES) & family.row_modes
        if server.number < family.truncates_since:
            modes &= ~TIME_TRUNCATE_FRACTIONAL
        self._modes = modes

    def of(self, state: RowState | None, *, zoned: bool = True) -> dict[bytes, bytes]:
        """Return the state to apply rows in; with the pinned time zone unless `zoned`."""
        mode = self._always
        zone = names = b"DEFAULT"
        if state is not None:
            mode |= state.sql_mode & self._modes
            names = b"%d" % state.lc_time_names
            if state.time_zone is not None:
                zone = blob(state.time_zone)
        return {
            b"sql_mode": self.own[b"sql_mode"] if mode == self._always else b"%d" % mode,
            b"time_zone": zone if zoned else self.own[b"time_zone"],
            b"lc_time_names": names,
        }

    def around(self, rows: Iterable[bytes], state: RowState | None) -> Iterator[bytes | Setting]:
        """Yield the statements of rows, and what they are to be applied in before and after."""
        if setting := changes(self.own, self.of(state)):
            yield Setting(setting)
        yield from rows
        yield Setting(self.back)

    def in_single_bytes(self, rows: Iterable[bytes | Setting]) -> Iterator[bytes | Setting]:
        """Yield the BINLOG statements of rows, and around them what lets a server read them faster.

        Their text is base64, so it is the same in each character set. The server's parser takes
        4.7 ns a byte in UTF-8, where a character may have several, and a fifth less in this one.
        """
        yield Setting(_SINGLE_BYTE)
        yield from rows
        yield Setting(self._back_from_single)

    def opening(self, state: RowState | None) -> tuple[bytes, bytes]:
        """Return the statement that sets what a table of such rows keeps when it is opened.

        And the one that leads back; b"" for both if the session has that.
        """
        if state is None:
            return b"", b""
        kept = RowState(state.sql_mode & NO_UNSIGNED_SUBTRACTION, None, state.lc_time_names)
        setting = changes(self.own, self.of(kept, zoned=False))
        return (setting, self.back) if setting else (b"", b"")

    def of_groups(
        self, groups: Sequence[Group], statements: Callable[[Sequence[Group]], Iterable[bytes]]
    ) -> Iterator[bytes | Setting]:
        """Yield the `statements` of groups of rows, as `around` does of each state."""
        now = self.own
        for state, run in groupby(groups, lambda group: state_of_rows(group.steps)):
            wanted = self.of(state)
            if setting := changes(now, wanted):
                yield Setting(setting)
            now = wanted
            yield from statements(tuple(run))
        yield Setting(self.back)
