"""The state machine of a move, stopped after every act: what is undone, and in which order."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mtsd.model.errors import MtsdError, NeedsPersonError
from mtsd.operations.move.carrying_out import Hands, carry_out, put_back
from mtsd.operations.move.record import Record
from mtsd.operations.move.steps import Act, Heading, Journey, MoveStatement, MoveStep, Task

STEPS = (
    MoveStep("one", (Task("a", "a"), Task("b", "b")), (Task("-b", "-b"), Task("-a", "-a"))),
    MoveStep("two", (Task("c", "c"),)),
    MoveStep("three", (Task("d", "d"),), (Task("-d", "-d"),)),
    MoveStep("four", (Task("e", "e"),), (Task("-e", "-e"),), final=True),
    MoveStep("five", (Task("g", "g"),), (Task("-g", "-g"),)),
)
UNDONE = {
    "a": "-b -a", "b": "-b -a", "c": "-b -a", "d": "-d -b -a", "e": "-e -d -b -a", "g": "",
}  # fmt: skip


def names(journey: Journey) -> list[str]:
    """Carry everything out that is due, and return what that was."""
    found = []
    while journey.due is not None:
        assert isinstance(journey.due, Task)
        found.append(journey.due.name)
        journey = journey.succeeded()
    return found


def name_of(act: Act | None) -> str:
    return act.name if isinstance(act, Task) else ""


def stopped_at(name: str) -> Journey:
    journey = Journey(STEPS)
    while name_of(journey.due) != name:
        journey = journey.succeeded()
    return journey.failed()


@pytest.mark.parametrize("name", UNDONE)
def test_what_has_begun_is_undone_the_last_first(name: str) -> None:
    journey = stopped_at(name)
    assert names(journey) == UNDONE[name].split()
    assert journey.way is (Heading.BACK if UNDONE[name] else Heading.STUCK)


def test_a_final_act_of_which_nothing_is_known_counts() -> None:
    journey = Journey(STEPS)
    while name_of(journey.due) != "e":
        assert journey.failed(surely=False).way in {Heading.BACK, Heading.PUT_BACK}
        journey = journey.succeeded()
    assert journey.failed(surely=False).way is Heading.STUCK


def test_what_is_missing_of_a_move_that_is_stuck_is_named() -> None:
    opens, enables = (MoveStatement.plain("target", text) for text in ("OPEN", "ENABLE"))
    last = MoveStep("three", (Task("prove", "says how long that was"), enables))
    journey = Journey((STEPS[0], MoveStep("two", (opens,), final=True), last))
    while journey.due is not opens:
        journey = journey.succeeded()
    assert journey.failed(surely=False).missing == (opens, enables)


def test_a_move_that_succeeds_undoes_nothing() -> None:
    assert names(Journey(STEPS)) == list("abcdeg")


def test_what_cannot_be_undone_is_named_and_the_rest_is_undone() -> None:
    journey = stopped_at("d").failed()
    assert names(journey) == ["-b", "-a"]
    assert [act for act in journey.not_undone if isinstance(act, Task)] == [Task("-d", "-d")]
    while journey.due is not None:
        journey = journey.succeeded()
    assert journey.way is Heading.PUT_BACK


def test_where_two_might_apply_nothing_more_is_undone() -> None:
    steps = (STEPS[0], replace(STEPS[2], holds="take over again"))
    journey = Journey(steps)
    while name_of(journey.due) != "d":
        journey = journey.succeeded()
    journey = journey.failed().failed()
    assert journey.due is None
    assert journey.held == "take over again"
    assert [name_of(act) for act in journey.not_undone] == ["-d", "-b", "-a"]


class Trip:
    """Carries out the steps, noting each task; the one named `bad` behaves as it says."""

    def __init__(self, folder: Path, bad: str, how: Callable[[], Awaitable[str]]) -> None:
        self.did: list[str] = []
        self.said: list[str] = []
        acts = {name_of(act) for step in STEPS for act in (*step.acts, *step.undo)}
        tasks = {name: self._task(name) for name in acts}
        tasks[bad] = how
        self.record = Record(self.said.append, folder / "report.txt")
        self.hands = Hands({}, tasks)

    def _task(self, name: str) -> Callable[[], Awaitable[str]]:
        async def note() -> str:
            self.did.append(name)
            return ""

        return note

    async def go(self, limit: float = 60.0) -> str:
        with pytest.raises(NeedsPersonError) as refused:
            await carry_out(STEPS, self.hands, self.record, limit)
        return str(refused.value)


async def fails() -> str:
    raise MtsdError("the server is gone")


async def hangs() -> str:
    await asyncio.sleep(3600)
    return ""


async def test_an_error_a_time_out_and_an_interruption_put_everything_back(tmp_path: Path) -> None:
    for number, (how, limit, why) in enumerate(
        ((fails, 60.0, "the server is gone"), (hangs, 0.02, "it took longer than 0.02 s (d)"))
    ):
        (folder := tmp_path / str(number)).mkdir()
        trip = Trip(folder, "d", how)
        assert await trip.go(limit) == f"{why}. Everything is as it was before"
        assert trip.did == ["a", "b", "c", "-d", "-b", "-a"]
    begun = asyncio.Event()

    async def begins() -> str:
        begun.set()
        return await hangs()

    trip = Trip(tmp_path, "d", begins)
    moving = asyncio.create_task(trip.go())
    await begun.wait()
    moving.cancel()
    assert await moving == "interrupted. Everything is as it was before"
    assert trip.did == ["a", "b", "c", "-d", "-b", "-a"]
    kept = (tmp_path / "report.txt").read_text()
    assert [line.split("Z  ")[1] for line in kept.splitlines()] == [
        *trip.said, "interrupted. Everything is as it was before"
    ]  # fmt: skip


async def test_one_that_is_stuck_says_what_is_missing(tmp_path: Path) -> None:
    assert await Trip(tmp_path, "g", fails).go() == (
        "the server is gone. Step 5 (five) may not be done: look, and do by hand what is missing:"
        " g. What comes before it is done for good"
    )


async def test_neither_a_terminal_that_is_gone_nor_a_full_disk_ends_a_move(tmp_path: Path) -> None:
    (folder := tmp_path / "gone").mkdir()
    trip = Trip(folder, "d", fails)

    def broken(_: str) -> None:
        raise BrokenPipeError

    trip.record = Record(broken, folder / "another.txt")
    shutil.rmtree(folder)
    assert (await trip.go()).endswith("Everything is as it was before")
    assert trip.did == ["a", "b", "c", "-d", "-b", "-a"]
    said: list[str] = []
    folder.mkdir()
    record = Record(said.append, folder / "report.txt")
    shutil.rmtree(folder)
    record.say("one")
    record.say("two")
    assert said[0] == "one"
    assert "the move goes on" in said[1]
    assert said[2:] == ["two"]


async def test_what_was_killed_is_put_back_whatever_fails(tmp_path: Path) -> None:
    trip = Trip(tmp_path, "-b", fails)
    undoing = MoveStep("put back", (Task("-d", "-d"), Task("-b", "-b"), Task("-a", "-a")))
    with pytest.raises(NeedsPersonError, match=r"do it by hand: -b\. Or run this again"):
        await put_back(undoing, trip.hands, trip.record, 60.0)
    assert trip.did == ["-d", "-a"]


async def test_a_report_is_not_written_over(tmp_path: Path) -> None:
    trip = Trip(tmp_path, "-b", fails)
    with pytest.raises(NeedsPersonError, match="cannot be written"):
        Trip(tmp_path, "-b", fails)
    assert trip.record.file is not None
    assert trip.record.file.stat().st_mode & 0o777 == 0o600
