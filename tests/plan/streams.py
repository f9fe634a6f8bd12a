"""Loads for tests of the simulation."""

from collections.abc import Sequence

from hypothesis import strategies as st

from mtsd.model.group import GroupKind
from mtsd.model.position import Position
from mtsd.plan.costs import Costs
from mtsd.plan.replayed_group import ReplayedGroup
from tests.schedule.worlds.streams import Shape, group_of

COSTS = Costs(
    read_group=10e-6,
    send=50e-6,
    source_group=2e-6,
    transaction=300e-6,
    group=10e-6,
    row=10e-6,
    sync=500e-6,
)
"""Of the same order of magnitude as real costs."""
FREE = Costs(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def load_of_shapes(shapes: Sequence[Shape], rows: int = 2) -> list[ReplayedGroup]:
    """Return groups of these shapes with `rows` rows each."""
    return [
        ReplayedGroup(group_of(shape, number, Position("binlog.000001", 1000 * number)), rows, 1000)
        for number, shape in enumerate(shapes, 1)
    ]


def independent(count: int, databases: int) -> list[ReplayedGroup]:
    """Return groups that use the databases in turn."""
    return load_of_shapes([Shape((f"d{number % databases}",)) for number in range(count)])


_NAMES = st.sampled_from(["a", "b", "c", "d"])
SHAPES = st.lists(
    st.builds(
        Shape,
        st.lists(_NAMES, min_size=1, max_size=3, unique=True).map(tuple),
        alone=st.sampled_from([False] * 9 + [True]),
        kind=st.sampled_from(
            [GroupKind.ROWS] * 8 + [GroupKind.DDL, GroupKind.STATEMENTS, GroupKind.EMPTY]
        ),
        row_flags=st.sampled_from([1, 1, 1, None]),
    ),
    max_size=80,
)
