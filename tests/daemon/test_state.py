"""The state of a replica, decided from what the daemon is at and what of its servers is there."""

import pytest

from mtsd.config import Settings
from mtsd.control.status import State
from mtsd.daemon.status import DaemonState, state_of, status_of
from mtsd.wire.link import Link, Links


def link(what: str) -> Link:
    """Return one that is "up", "away" after a failed attempt, or "new"."""
    made = Link(lambda: 0.0, lambda: 0.0)
    if what == "up":
        made.up()
        made.works()
    elif what == "away":
        made.lost(0, "", 1.0)
    return made


@pytest.mark.parametrize(
    ("phase", "target", "source", "obstacle", "delayed", "expected"),
    [
        ("starting", "new", "new", False, False, "starting"),
        ("recovering", "new", "new", False, False, "starting"),
        ("recovering", "away", "new", False, False, "connecting"),
        ("starting", "away", "new", False, False, "connecting"),
        # At a channel's beginning the source has to say where it begins.
        ("starting", "new", "away", False, False, "connecting"),
        ("recovering", "up", "new", False, False, "recovering"),
        ("recovering", "up", "away", False, False, "recovering"),
        ("recovering", "up", "new", True, False, "waiting"),
        ("running", "up", "up", False, False, "running"),
        ("running", "up", "new", False, False, "connecting"),
        ("running", "up", "away", False, False, "connecting"),
        ("running", "up", "up", False, True, "delayed"),
        ("running", "up", "away", False, True, "connecting"),
        ("running", "up", "up", True, True, "waiting"),
        ("running", "up", "away", True, False, "waiting"),
        ("stopping", "up", "away", True, True, "stopping"),
        ("stopped", "new", "new", False, False, "stopped"),
        ("failed", "up", "up", True, False, "failed"),
        ("standby", "new", "new", False, False, "standby"),
    ],
)
def test_state(
    phase: State, target: str, source: str, obstacle: bool, delayed: bool, expected: State
) -> None:
    found = state_of(
        phase, source=link(source), target=link(target), obstacle=obstacle, delayed=delayed
    )
    assert found == expected


@pytest.mark.parametrize("phase", ["recovering", "stopping", "stopped"])
def test_nothing_is_wrong_after_a_graceful_stop(phase: State) -> None:
    known = DaemonState(phase, Links(source=link("away"), target=link("up")))
    told = status_of(known, Settings(), None)
    assert (told.last_error is None) == (phase == "stopped")
