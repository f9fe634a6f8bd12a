"""Carries out the doubt about a group (`mtsd.schedule.doubt`) on a session of the target.

All that cannot commit together with its record goes through `Doubtful`, whether it is in memory or
streamed, and so passes the fault points: before and after each record, and around the settlement.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import structlog

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.session.retry import pause_before
from mtsd.apply.statements.unprotected import NotSettledError, RemainsError
from mtsd.model.errors import ApplyError, MtsdError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint
from mtsd.model.group import GroupKind
from mtsd.model.outcome.command import command
from mtsd.schedule.doubt import (
    WHOLE,
    Act,
    Effect,
    Forget,
    Keep,
    Note,
    NoteAll,
    Outcome,
    Owe,
    Settle,
    Transition,
    came_of,
    doubt,
    run_of_doubts,
)

log = structlog.get_logger(__name__)

Settling = Callable[[], Awaitable[None]]
Owing = Callable[[], None]
Noting = Callable[[InDoubt], Awaitable[None]]


class HalfAppliedError(NeedsPersonError):
    """A part of a group remained on the target when it failed; its in-doubt record is kept."""

    def __init__(self, number: int, error: MtsdError) -> None:
        super().__init__(
            f"a part of group {number} has been applied and cannot be rolled back, because it is in"
            f" non-transactional tables: {error}"
        )
        self.number = number
        self.error = error


class Records(Protocol):
    """The records of groups in doubt, each change of which commits by itself."""

    async def note(self, doubt: InDoubt, *, anew: bool = False) -> None:
        """Record that a group is in doubt; `anew`: replacing the existing record."""
        ...

    async def forget(self, number: int) -> None:
        """Remove the record of a group that has had no effect."""
        ...

    async def has_executed(self, gtid: str) -> bool:
        """Return whether the target has executed a GTID."""
        ...


class RunRecords(Records, Protocol):
    """As well for groups that share their transactions."""

    async def note_all(self, doubts: Sequence[InDoubt]) -> None:
        """Record that groups are in doubt, all of them at once."""
        ...


class Doubtful:
    """One group in doubt, from its record to its settlement.

    `record` is that of its first effect; `says_done` are the numbers of the errors by which that
    shows that it has been there before. The life: `begin`; the effect; `done` or `failed` or
    `dropped`. Methods raise ServerError if a record cannot be written, and then nothing has
    changed; ConnectionLostError, after which the record stays for a restart.
    """

    def __init__(
        self,
        records: Records,
        record: InDoubt,
        reached: FaultHook,
        effect: Effect = WHOLE,
        *,
        repeats: bool = False,
        says_done: frozenset[int] = frozenset(),
    ) -> None:
        self._records = records
        self._effects = [effect]
        self._notes = [record]
        self.says_done = says_done
        self._reached = reached
        self._machine = doubt(self._effects, repeats=repeats)
        self._step: Transition | None = None

    @property
    def record(self) -> InDoubt:
        """The record of its last effect."""
        return self._notes[-1]

    @property
    def is_acting(self) -> bool:
        """Whether one of its effects has begun, and is not over."""
        return isinstance(self._step, Act)

    async def begin(self, note: Noting | None = None) -> None:
        """Write the record; `note`: in this way, together with something else."""
        self._step = next(self._machine)
        await self._go_on(note=note)

    async def then(self, effect: Effect, record: InDoubt, note: Noting | None = None) -> None:
        """Note that an effect is done, and that another one comes, which has that record."""
        self._effects.append(effect)
        self._notes.append(record)
        self._answer(Outcome.DONE)
        await self._go_on(note=note)

    async def done(self, settle: Settling | None = None, owe: Owing | None = None) -> None:
        """Note that the last effect is done, and settle the group, unless that settles it.

        `owe`: what lets it be settled later, if its trace lasts. Raises ApplyError if the group
        cannot be settled.
        """
        self._answer(Outcome.DONE)
        await self._go_on(settle=settle, owe=owe)

    async def done_by(self, commit: Settling) -> None:
        """Commit the last effect, which settles the group in the same transaction.

        Raises ServerError; then the effect has failed.
        """
        await self._reached(FaultPoint.BEFORE_SETTLED)
        await commit()
        self._answer(Outcome.DONE)
        await self._go_on()
        await self._reached(FaultPoint.AFTER_SETTLED)

    async def failed(self, error: MtsdError) -> Outcome:
        """Note that an effect has failed and was rolled back; return what came of it.

        DONE if the error says that it was there before: then `done` is still to come.
        """
        if not isinstance(self._step, Act):
            await self.dropped()
            return Outcome.UNDONE
        evidence = self._notes[self._step.effect].evidence
        outcome = came_of(
            leaves_changes=isinstance(error, RemainsError)
            or (isinstance(error, ServerError) and error.leaves_changes),
            has_trace=bool(evidence) and await self._records.has_executed(evidence),
            says_done=isinstance(error, ServerError) and error.number in self.says_done,
        )
        if outcome is not Outcome.DONE:
            self._answer(outcome)
            await self._go_on()
        return outcome

    async def dropped(self) -> None:
        """Note that what has begun was rolled back, and leaves nothing: its end has not come."""
        if self._step is not None:
            self._answer(Outcome.UNDONE)
            await self._go_on()

    async def attempt(self, act: Callable[[], Awaitable[None]]) -> None:
        """Carry out an effect, which leaves nothing open if it fails.

        Raises HalfAppliedError if a part of it remains; ServerError and NeedsPersonError if not.
        """
        try:
            await act()
        except NotSettledError as error:
            raise not_settled(self.record, error.error) from error
        except (ServerError, NeedsPersonError) as error:
            outcome = await self.failed(error)
            if outcome is Outcome.REMAINS:
                raise HalfAppliedError(self.record.number, error) from error
            if outcome is Outcome.UNDONE:
                raise

    async def carry_out(
        self,
        act: Callable[[], Awaitable[None]],
        settle: Settling | None = None,
        *,
        note: Noting | None = None,
        owe: Owing | None = None,
    ) -> None:
        """Apply a group that is in memory. Raises as `attempt` and `done` do."""
        await self.begin(note)
        await self.attempt(act)
        await self.done(settle, owe)

    def _answer(self, outcome: Outcome) -> None:
        try:
            self._step = self._machine.send(outcome)
        except StopIteration:
            self._step = None

    async def _go_on(
        self,
        note: Noting | None = None,
        settle: Settling | None = None,
        owe: Owing | None = None,
    ) -> None:
        """Carry out what comes up to the next effect, or to the end."""
        while (step := self._step) is not None and not isinstance(step, Act):
            if isinstance(step, Note):
                await self._note(step, note)
            elif isinstance(step, Settle):
                await self._settle(settle)
            elif isinstance(step, Owe):
                if owe is None:
                    raise TypeError(f"group {self.record.number} is applied, and nobody owes it")
                await self._reached(FaultPoint.BEFORE_SETTLED)
                owe()
            elif isinstance(step, Forget):
                await self._records.forget(self.record.number)
            elif isinstance(step, Keep):
                await keep_record(self._records, self._notes[step.effect])
            self._answer(Outcome.DONE)

    async def _note(self, step: Note, note: Noting | None) -> None:
        record = self._notes[step.effect]
        await self._reached(FaultPoint.BEFORE_IN_DOUBT)
        if note is None:
            await self._records.note(record, anew=step.over)
        else:
            await note(record)
        await self._reached(FaultPoint.AFTER_IN_DOUBT)

    async def _settle(self, settle: Settling | None) -> None:
        if settle is None:
            raise TypeError(f"group {self.record.number} is applied, and nothing settles it")
        await self._reached(FaultPoint.BEFORE_SETTLED)
        try:
            await settle()
        except ServerError as error:
            # The group is applied: callers must not take this for its failure and retry it.
            raise not_settled(self.record, error) from error
        await self._reached(FaultPoint.AFTER_SETTLED)


async def carry_out_run(
    records: RunRecords,
    notes: Sequence[InDoubt],
    act: Callable[[int], Awaitable[Outcome]],
    settle: Callable[[int, int], Awaitable[None]],
    reached: FaultHook,
    *,
    settles: bool = False,
) -> int:
    """Apply groups whose records are `notes` in a run; return how many of them are settled.

    `act` applies one of them, and `settles` it or not; `settle` does what `SettleRun` says. Raises
    ServerError before anything is done, ApplyError if the run cannot be settled,
    ConnectionLostError.
    """
    machine = run_of_doubts(len(notes), settles=settles)
    step = next(machine)
    while True:
        outcome = Outcome.DONE
        if isinstance(step, NoteAll):
            for _ in notes:
                await reached(FaultPoint.BEFORE_IN_DOUBT)
            await records.note_all(notes)
            for _ in notes:
                await reached(FaultPoint.AFTER_IN_DOUBT)
        elif isinstance(step, Act):
            outcome = await act(step.effect)
        elif isinstance(step, Keep):
            await keep_record(records, notes[step.effect])
        else:
            for _ in notes[: step.done]:
                await reached(FaultPoint.BEFORE_SETTLED)
            try:
                await settle(step.done, step.forgotten)
            except ServerError as error:
                if step.done and not settles:
                    raise not_settled(notes[step.done - 1], error) from error
                raise ApplyError(
                    f"{notes[step.done].group}, is not applied, and the record that it is in doubt"
                    f" cannot be removed: {error}. The next start settles it"
                ) from error
            for _ in notes[: step.done]:
                await reached(FaultPoint.AFTER_SETTLED)
        try:
            step = machine.send(outcome)
        except StopIteration as ended:
            return int(ended.value)


def not_settled(record: InDoubt, error: ServerError) -> ApplyError:
    """Return the error for a group that is applied, and cannot be settled."""
    message = f"{record.group}, is applied, but its record cannot be written: {error}. "
    if record.kind != GroupKind.NON_TRANSACTIONAL.value:
        return ApplyError(f"{message}The next start settles it")
    if error.remedy:
        return ApplyError(f"{message}{error.remedy}", group=record.group)
    return ApplyError(
        f"{message}Once the target accepts it, say that it is applied:"
        f" {command('resolve', '--group', str(record.number), '--applied')}, then start again",
        group=record.group,
    )


def half_of(record: InDoubt) -> InDoubt:
    """Return the record of that group which says that a part of it remained."""
    return replace(
        record,
        kind=GroupKind.NON_TRANSACTIONAL.value,
        evidence="",
        target_file="",
        target_offset=0,
        thread=0,
    )


async def keep(records: Records, groups: Iterable[InDoubt], error: MtsdError) -> None:
    """Record that a part of groups remains, of which none was in doubt; raise HalfAppliedError."""
    first, *others = groups
    for record in (*others, first):
        await keep_record(records, record)
    raise HalfAppliedError(first.number, error) from error


async def keep_record(records: Records, record: InDoubt) -> None:
    """Write the record of a group of which a part remains, however long that takes.

    Without it, the group would be tried again, or be applied again by the next start.
    """
    attempt = 0
    while True:
        try:
            await records.note(half_of(record), anew=True)
        except ServerError as refused:
            error = refused
        else:
            return
        attempt += 1
        pause = pause_before(attempt)
        log.error(
            "a part of a group has been applied, and cannot be rolled back; the record that keeps"
            " it from being applied again cannot be written: let the target accept it",
            group=record.number, position=str(record.end), error=str(error), next_try_s=pause,
        )  # fmt: skip
        await asyncio.sleep(pause)
