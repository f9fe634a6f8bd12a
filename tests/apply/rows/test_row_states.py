"""What is set before rows of which the target computes something, and after them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.apply.rows.bundle import Setting
from mtsd.apply.rows.row_states import RowStates, keeps_zones
from mtsd.apply.session.session_state import PINNED
from mtsd.model.group import Group
from mtsd.model.server import Flavour, ServerVersion
from mtsd.model.session import COMPUTING_MODES, RowState, SessionContext, row_state
from mtsd.model.step import Rows
from tests.binlog.transactions import group_of, rows, table_map

MYSQL = ServerVersion(Flavour.MYSQL, (9, 7, 0))
OLD = ServerVersion(Flavour.MYSQL, (5, 7, 44))
MARIADB = ServerVersion(Flavour.MARIADB, (11, 8, 1))
PLAIN = group_of([table_map(1), rows(1)])
STATES = st.sampled_from([
    None,
    RowState(0, None, 0),
    RowState(64, None, 0),
    RowState(0, b"+05:00", 0),
    RowState(0, b"+00:00", 4),
])  # fmt: skip


def under(state: RowState | None) -> Group:
    return replace(PLAIN, steps=(Rows(PLAIN.rows, state),))


@given(st.lists(STATES, min_size=1, max_size=8))
def test_each_group_has_its_state_and_nothing_remains(states: list[RowState | None]) -> None:
    making = RowStates(PINNED, MYSQL)
    # Rows that nothing is computed from may have been read in another character set.
    client = {b"character_set_client": PINNED[b"character_set_client"]}
    now = making.own | client
    seen: list[dict[bytes, bytes]] = []

    def statements(run: Sequence[Group]) -> list[bytes]:
        return [b"rows"] * len(run)

    for item in making.of_groups([under(state) for state in states], statements):
        if isinstance(item, Setting):
            assert item.sql.startswith(b"SET @@session.")
            for part in item.sql.removeprefix(b"SET ").split(b","):
                name, _, value = part.removeprefix(b"@@session.").partition(b"=")
                assert name in now
                now[name] = value
        else:
            seen.append(dict(now))
    assert seen == [making.of(state) | client for state in states]
    assert now == making.own | client


@pytest.mark.parametrize("state", [None, RowState(64, b"SYSTEM", 4), RowState(0, b"+00:00", 0)])
def test_around_rows(state: RowState | None) -> None:
    making = RowStates(PINNED, MYSQL)
    found = list(making.around([b"one", b"two"], state))
    assert [item for item in found if not isinstance(item, Setting)] == [b"one", b"two"]
    assert found[-1] == Setting(making.back)
    # An empty statement would be answered with an error.
    assert all(item.sql for item in found if isinstance(item, Setting))


@pytest.mark.parametrize(
    ("server", "as_sql", "mode"),
    [
        (MYSQL, False, COMPUTING_MODES),
        (OLD, False, COMPUTING_MODES & ~(1 << 32)),
        (MARIADB, False, 64),
        (MYSQL, True, 64 | 1 << 32 | 1 << 19 | 1 << 22 | 1 << 25),
        (MARIADB, True, 64 | 1 << 19 | 1 << 22 | 1 << 25),
    ],
)
def test_modes_that_a_server_has(server: ServerVersion, as_sql: bool, mode: int) -> None:
    making = RowStates(PINNED, server, as_sql=as_sql)
    state = row_state(SessionContext(sql_mode=(1 << 33) - 1))
    assert making.of(state)[b"sql_mode"] == b"%d" % mode
    assert making.of(RowState(0, None, 0))[b"sql_mode"] == PINNED[b"sql_mode"]


def test_what_is_not_said_is_the_targets() -> None:
    making = RowStates(PINNED, MYSQL)
    unknown = {b"sql_mode": b"0", b"time_zone": b"DEFAULT", b"lc_time_names": b"DEFAULT"}
    assert making.of(None) == unknown
    assert making.of(row_state(SessionContext())) == {**unknown, b"lc_time_names": b"0"}
    assert making.of(None, zoned=False)[b"time_zone"] == PINNED[b"time_zone"]


def test_where_rows_keep_their_zone() -> None:
    assert [keeps_zones(server, "") for server in (MYSQL, OLD, MARIADB)] == [True, False, False]
    assert not keeps_zones(MYSQL, "changed")
