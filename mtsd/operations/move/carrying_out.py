"""Carries out the steps of a move, and puts everything back if they do not all succeed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from mtsd.model.error_numbers import NO_SUCH_CHANNEL
from mtsd.model.errors import MtsdError, NeedsPersonError, ServerError
from mtsd.operations.move.admin import AdminSession
from mtsd.operations.move.record import Record, in_words
from mtsd.operations.move.steps import Act, Heading, Journey, MoveStatement, MoveStep

Tasks = Mapping[str, Callable[[], Awaitable[str]]]
"""What carries out a task, by its name; it returns what it has found, "" if nothing."""
_UNDO_S: Final = (15.0, 60.0)
"""How long one act of the way back may take, at least and at most; between, as long as all may:
nobody waits for ever for what cannot be undone."""


class Hands:
    """What acts are carried out with: sessions by server, and tasks by name."""

    def __init__(self, sessions: Mapping[str, AdminSession], tasks: Tasks) -> None:
        self._sessions = sessions
        self._tasks = tasks

    async def carry(self, act: Act) -> str:
        """Carry out an act; return what was found. Raises MtsdError."""
        if isinstance(act, MoveStatement):
            await self._sessions[act.server].run(act)
            return ""
        return await self._tasks[act.name]()


@asynccontextmanager
async def answered_within(seconds: float) -> AsyncIterator[None]:
    """Limit how long servers are looked at before anything is done. Raises NeedsPersonError."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise NeedsPersonError(
            f"a server has not answered within {seconds:g} s, and nothing was done: SHOW"
            " PROCESSLIST there says what is waited for"
        ) from None


async def carry_out(
    steps: tuple[MoveStep, ...], hands: Hands, record: Record, limit: float
) -> None:
    """Carry out all steps within `limit` seconds, or undo what has begun.

    Being cancelled (Ctrl-C) undoes it as well. Raises NeedsPersonError that says what was put back
    and what was not, and whatever else the steps raise, after that.
    """
    journey = Journey(steps)
    told = -1
    try:
        async with asyncio.timeout(limit):
            while journey.way is Heading.FORWARD and (act := journey.due) is not None:
                if journey.step != told:
                    told = journey.step
                    record.say(f"{told + 1}. {steps[told].name}")
                _note(record, act)
                found = await hands.carry(act)
                if found:
                    record.say(f"   {found}")
                journey = journey.succeeded()
    except BaseException as error:
        why = _why(error, limit)
        if isinstance(error, TimeoutError) and journey.due is not None:
            why += f" ({in_words(journey.due)})"
        # A connection that is lost, or an interruption, tells nothing.
        surely = isinstance(error, ServerError | NeedsPersonError)
        record.say(f"not done: {why}")
        back = await _surely_put_back(journey.failed(surely=surely), hands, record, limit)
        said = f"{why}. {_said_after(back)}"
        record.keep(said)
        if isinstance(error, MtsdError | TimeoutError | asyncio.CancelledError):
            raise NeedsPersonError(said) from error
        raise


async def put_back(undoing: MoveStep, hands: Hands, record: Record, limit: float) -> None:
    """Carry out what undoes a move whose command was killed: each act, whatever fails.

    `limit` is what was to be its time, in seconds.

    Raises NeedsPersonError that says what was not put back.
    """
    record.say(f"1. {undoing.name}")
    journey = Journey((undoing,), way=Heading.BACK, left=undoing.acts)
    journey = await _surely_put_back(journey, hands, record, limit)
    if journey.not_undone:
        said = f"{_said_after(journey)}. Or run this again"
        record.keep(said)
        raise NeedsPersonError(said)


async def _surely_put_back(journey: Journey, hands: Hands, record: Record, limit: float) -> Journey:
    """Put back; being cancelled meanwhile changes nothing."""
    least, most = _UNDO_S
    back = asyncio.create_task(_put_back(journey, hands, record, min(max(limit, least), most)))
    while not back.done():
        try:
            await asyncio.shield(back)
        except asyncio.CancelledError:
            record.say("it is being put back: wait for that")
    return back.result()


async def _put_back(journey: Journey, hands: Hands, record: Record, seconds: float) -> Journey:
    while (act := journey.due) is not None:
        _note(record, act, "back: ")
        try:
            async with asyncio.timeout(seconds):
                found = await hands.carry(act)
        except (MtsdError, TimeoutError) as error:
            if isinstance(error, ServerError) and error.number in NO_SUCH_CHANNEL:
                # The act that would have made it has failed.
                journey = journey.succeeded()
                continue
            record.say(f"   not undone: {_why(error, seconds)}")
            journey = journey.failed()
        else:
            if found:
                record.say(f"   {found}")
            journey = journey.succeeded()
    return journey


def _note(record: Record, act: Act, prefix: str = "") -> None:
    record.say(f"   {prefix}{in_words(act)}")


def _why(error: BaseException, limit: float) -> str:
    if isinstance(error, TimeoutError):
        return f"it took longer than {limit:g} s"
    if isinstance(error, asyncio.CancelledError):
        return "interrupted"
    return str(error).rstrip(".") or repr(error)


def _said_after(journey: Journey) -> str:
    if journey.way is Heading.STUCK:
        name = journey.steps[journey.step].name
        missing = "; ".join(map(in_words, journey.missing))
        return (
            f"Step {journey.step + 1} ({name}) may not be done: look, and do by hand what is"
            f" missing: {missing}. What comes before it is done for good"
        )
    if not journey.not_undone:
        return "Everything is as it was before"
    left = "; ".join(map(in_words, journey.not_undone))
    if journey.held:
        return f"Not everything was put back, and this is left: {left}. {journey.held}"
    return f"Not everything could be put back, so do it by hand: {left}"
