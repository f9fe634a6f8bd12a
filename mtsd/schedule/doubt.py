"""Doubt: how a group is applied whose effect cannot commit together with the record of it.

A definition commits by itself, and so do changes to tables without transactions, and what prepares
or completes an XA transaction. Pure: a generator says what is to be done next, and is told what
came of it; `mtsd.replica.ways.doubtful` carries it out.

`Note`: commit the record that the group is in doubt, which names the trace of its effect.
`Act`: the effect.
`Settle`: in one transaction, the worker's row gets the group and the record goes.
`Owe`: the group counts as done; its place in the worker's row comes with whatever the worker
commits next, and its record goes when that is stored, or a low-water mark that has passed it.
`Forget`: the record goes; the effect has left nothing.
`Keep`: the record says from now on that a part of the effect is there; only a person can end that.

For example, group 7 is ALTER TABLE … ADD INDEX, and runs under the GTID U:7, which nothing else
has. Note: "7, shown by U:7". Act: the statement. Settle: the row has 7, and the record is gone. A
run that is killed in between leaves the record. If the target has executed U:7, the restart settles
the group; if not, it removes the record, and the group is applied as if it came for the first time.

What keeps this safe, whoever dies and whatever fails:

1. An effect begins only after its record has committed. So a group that has neither a record nor a
   place in a worker's row has had no effect.
2. A record goes in two ways. Once the effect is whole: together with what stores the group as done,
   the worker's row or the low-water mark, or after it. Without that, once the server has answered
   that the effect failed, has rolled it back, and its trace is not there. So a group that has a
   place in the row has had its effect, whole, and once; and a record of one that has a place there,
   or before the mark, says nothing more.
3. A trace commits with the effect, and nothing else leaves the same one: a GTID that the target has
   not executed, or a thread id drawn at random and looked for from where the target's binlog ended
   before the record. It serves one attempt: under a GTID that is used up, a server would pass over
   the group in silence.
4. What may have had its effect, and has no trace that tells (`repeats`), is tried again only where
   a second run leaves what the first has left, or fails with an error that says so. Until that is
   over, whatever happens, its record stays.
5. An answer that does not come ends the run, and the record stays as it is. A restart judges it
   once nothing of that run can still be going on.
6. If a part remains of an effect that has failed, Keep comes before anybody is told, and is tried
   until it succeeds. An effect of which a part may remain, and whose trace does not tell the part
   from the whole, is recorded as one from the beginning (`partial`), so that being interrupted says
   the same. What this leaves open: a run that is killed between the error of a definition that has
   stopped in its middle, as a DROP of several tables without transactions can, and its Keep.
7. Of several effects, a later one begins only after the earlier one is whole, and the record says
   where the group is. If the later one fails and leaves nothing, the record says again that the
   earlier one is there: it does not go.
8. The settlement is owed only if the server has answered that the effect is whole, and its trace
   tells so whatever comes after (`lasts`): others begin that build on the group, and a trace that
   they can wipe out, such as the error of a second CREATE TABLE after a DROP TABLE, would have it
   applied again behind them. At most one is owed by a worker: the next record that it writes brings
   the settlement of the one before, in the same transaction.
9. Several groups whose records commit at once, before all of them, may each bring its own place in
   the worker's row (`run_of_doubts`, `settles`): its rows and that place are one statement, and the
   session runs nothing after one that has failed. So of those that have no place there, only the
   first can have begun: a record behind it says nothing (`unsettled` of recovery).
   Their records go with a low-water mark that passes them, as of what is owed.
"""

import enum
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Outcome(enum.Enum):
    """What came of an effect, or of a record that could not be written."""

    DONE = "done"
    UNDONE = "undone"
    """It has failed, or its end has not come; nothing of it remains."""
    REMAINS = "remains"
    """It has failed, and a part of it remains, or all of it, or that may be."""


class Effect(NamedTuple):
    """One effect of a group, and what is special about it."""

    noted: bool = True
    """Whether it has a record of its own; else that of the effect before it also holds for it."""
    partial: bool = False
    """Whether its record says that a part may be there: nothing would tell that later."""
    settles: bool = False
    """Whether it commits together with what settles the group."""
    revocable: bool = False
    """Whether it can be undone when it is there, until a later effect has its record."""
    lasts: bool = False
    """Whether its trace tells that it is there whatever comes after: see `lasts`."""


WHOLE = Effect()
NOTHING = Effect(noted=False)
"""There is nothing to do, and the group is only settled."""
PARTIAL = Effect(partial=True)
"""Something that cannot be undone once it has begun."""


@dataclass(frozen=True, slots=True)
class Note:
    """Commit the record of the effect with that index; `over` one of the same group."""

    effect: int
    over: bool


@dataclass(frozen=True, slots=True)
class Act:
    """Carry out the effect with that index."""

    effect: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Advance the worker's row and remove the record, in one transaction."""


@dataclass(frozen=True, slots=True)
class Owe:
    """Go on, and settle the group with what the worker commits next."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove the record."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Replace the record by one that says that a part of the effect with that index remains."""

    effect: int


Transition = Note | Act | Settle | Owe | Forget | Keep


def doubt(
    effects: Sequence[Effect], *, repeats: bool = False
) -> Generator[Transition, Outcome, Outcome]:
    """Yield what is to be done for a group that has these effects, one after another.

    Each transition is answered with what came of it; one that fails without an answer ends the run.
    `effects` may grow until the last one is done: of a streamed group, only its end tells what has
    to follow. With `repeats`, the group may have a record, and its first effect may be there.
    Returns DONE if the group is settled, or owed, UNDONE if nothing of its last effect is there,
    REMAINS if its record says so.
    """
    at = 0
    while at < len(effects):
        effect = effects[at]
        if effect.noted:
            noted = yield Note(at, repeats or at > 0)
            if noted is not Outcome.DONE:
                if at and effects[at - 1].revocable:
                    yield Forget()
                return Outcome.UNDONE
        outcome = yield Act(at)
        if outcome is Outcome.REMAINS:
            if not effect.partial:
                yield Keep(at)
            return outcome
        if outcome is Outcome.UNDONE:
            if at == 0 and not repeats:
                yield Forget()
            elif at and effect.partial:
                yield Note(at - 1, True)
            return outcome
        at += 1
    last = effects[-1]
    if not last.settles:
        yield Owe() if last.lasts else Settle()
    return Outcome.DONE


def came_of(*, leaves_changes: bool, has_trace: bool, says_done: bool) -> Outcome:
    """Return what came of an effect that the server has answered with an error.

    `leaves_changes`: a ROLLBACK could not undo all of it. `has_trace`: its GTID is executed all the
    same. `says_done`: by the error, it has been there before.
    """
    if leaves_changes or has_trace:
        return Outcome.REMAINS
    return Outcome.DONE if says_done else Outcome.UNDONE


class Trace(NamedTuple):
    """By what an effect shows itself, as its record names it."""

    gtid: bool
    """A GTID that nothing else has."""
    place: bool
    """The end of the target's own binlog before it."""
    thread: bool
    """A thread id in that binlog that nothing else has."""


def trace_of_definition(
    *, has_gtid: bool, is_separate: bool, repeats: bool, depends_on_thread: bool
) -> Trace:
    """Return what the record of a definition names, as far as the target has it.

    `is_separate`: it is a CREATE TABLE … SELECT, whose table is created by itself, and by its
    existence shows that. What `repeats` leaves no other trace: a binlog that lacks it a second time
    tells nothing. What does something else under another thread id has to keep that of the source's
    session.
    """
    if is_separate:
        return Trace(gtid=False, place=False, thread=False)
    thread = not has_gtid and not repeats and not depends_on_thread
    # Beside the GTID, it tells whether the target has been restarted since.
    return Trace(has_gtid, has_gtid or thread, thread)


def lasts(*, has_gtid: bool, has_thread: bool, may_be_undone: bool) -> bool:
    """Return whether the trace of a definition tells that it is there, whatever comes after.

    A GTID does. So does a thread id in the target's binlog, unless it `may_be_undone` although it
    is logged: a server that does so with a CREATE TABLE when it recovers logs a DROP TABLE then,
    and that may be of a later group's table of the same name.
    """
    return has_gtid or (has_thread and not may_be_undone)


@dataclass(frozen=True, slots=True)
class NoteAll:
    """Commit the records of all groups of a run, in one transaction."""


@dataclass(frozen=True, slots=True)
class SettleRun:
    """Settle the groups before `done`, and forget those from `forgotten` on, in one transaction."""

    done: int
    forgotten: int


RunTransition = NoteAll | Act | Keep | SettleRun


def run_of_doubts(groups: int, *, settles: bool = False) -> Generator[RunTransition, Outcome, int]:
    """Yield what is to be done for groups of one effect each, which share their transactions.

    Their effects have nothing to do with each other. The first one that fails ends the run, and has
    to be applied by itself. If a part of it remains, its record says so before anything else.
    With `settles`, each effect commits together with the place of its group in the worker's row:
    then there is something to settle only if one has failed.
    Returns how many groups are settled.
    """
    yield NoteAll()
    done = 0
    outcome = Outcome.DONE
    while done < groups:
        outcome = yield Act(done)
        if outcome is not Outcome.DONE:
            break
        done += 1
    if outcome is Outcome.REMAINS:
        yield Keep(done)
    if outcome is not Outcome.DONE or not settles:
        yield SettleRun(done, done + (outcome is Outcome.REMAINS))
    return done
