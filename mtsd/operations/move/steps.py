"""A move as steps that can be undone: what is due next, and what remains to be put back.

Nothing here waits, and nothing is sent. A move goes forward act by act. If one fails, or somebody
interrupts it, the step that has begun is undone, and then those before it, the last one first:

    >>> stop = MoveStep("stop", (Task("stop", "stops"),), (Task("start", "starts"),))
    >>> record = MoveStep("record", (Task("record", "records"),), (Task("forget", "forgets"),))
    >>> journey = Journey((stop, record)).succeeded()
    >>> journey.due.name
    'record'
    >>> back = journey.failed()
    >>> [act.name for act in (back.due, back.succeeded().due)]
    ['forget', 'start']

An act may have been carried out although it has failed (a connection that is lost tells nothing),
so the undo of a step has to be right whether its acts were carried out, or not, or in part. After a
step that is `final` nothing is undone any more: then others may rely on what was done.
"""

import enum
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class MoveStatement:
    """A statement on the "source" or the "target"; `shown` is it without a password."""

    server: str
    sql: str = field(repr=False)
    shown: str

    @classmethod
    def plain(cls, server: str, sql: str) -> "MoveStatement":
        """Return one that has no password in it."""
        return cls(server, sql, sql)


@dataclass(frozen=True, slots=True)
class Task:
    """What mtsd does itself, or waits for, under a name; `words` say it to a person."""

    name: str
    words: str


Act = MoveStatement | Task


@dataclass(frozen=True, slots=True)
class MoveStep:
    """A part of a move that is undone as a whole."""

    name: str
    acts: tuple[Act, ...]
    undo: tuple[Act, ...] = ()
    final: bool = False
    """Once its one act is carried out, neither it nor what was before it is undone."""
    holds: str = ""
    """What a person does if this cannot be undone; then nothing before it is undone either, or two
    would apply. "": the rest is undone all the same."""


class Heading(enum.Enum):
    """Where a move is going."""

    FORWARD = "forward"
    BACK = "back"
    ARRIVED = "arrived"
    PUT_BACK = "put back"
    STUCK = "stuck"
    """It has failed after a final step: what is missing has to be done by a person."""


@dataclass(frozen=True, slots=True)
class Journey:
    """How far a move has come. Immutable: each event returns what is then."""

    steps: tuple[MoveStep, ...]
    step: int = 0
    act: int = 0
    way: Heading = Heading.FORWARD
    left: tuple[Act, ...] = ()
    """What is still to be undone, on the way back."""
    not_undone: tuple[Act, ...] = ()
    """What could not be undone."""
    held: str = ""
    """What a person does now, as something is left that must not be undone."""

    @property
    def due(self) -> Act | None:
        """What has to be done now; None once it is over."""
        if self.way is Heading.FORWARD:
            return self.steps[self.step].acts[self.act]
        return self.left[0] if self.left else None

    @property
    def missing(self) -> tuple[Act, ...]:
        """What is not known to be done of a move that is stuck, and what it would still send."""
        sent = (act for step in self.steps[self.step + 1 :] for act in step.acts)
        later = (act for act in sent if isinstance(act, MoveStatement))
        return (*self.steps[self.step].acts[self.act :], *later)

    def succeeded(self) -> "Journey":
        """Return what is once the act that was due is carried out."""
        if self.way is Heading.BACK:
            return _one_less(self)
        if self.act + 1 < len(self.steps[self.step].acts):
            return replace(self, act=self.act + 1)
        if self.step + 1 < len(self.steps):
            return replace(self, step=self.step + 1, act=0)
        return replace(self, way=Heading.ARRIVED)

    def failed(self, *, surely: bool = True) -> "Journey":
        """Return what is once the act that was due has failed, or the move was interrupted.

        `surely`: it was not carried out. Of a final act it counts where that is not known.
        """
        if self.way is Heading.BACK:
            act = self.left[0]
            held = next((step.holds for step in self.steps if step.holds and act in step.undo), "")
            if held:
                left = (*self.not_undone, *self.left)
                return replace(self, way=Heading.PUT_BACK, left=(), not_undone=left, held=held)
            # The rest is undone all the same: each part that is left behind is one too many.
            return _one_less(replace(self, not_undone=(*self.not_undone, act)))
        if self.way is not Heading.FORWARD:
            return self
        begun = self.steps[: self.step + (0 if surely else 1)]
        if any(step.final for step in begun):
            return replace(self, way=Heading.STUCK)
        left = tuple(act for step in reversed(self.steps[: self.step + 1]) for act in step.undo)
        return replace(self, way=Heading.BACK if left else Heading.PUT_BACK, left=left)


def _one_less(journey: Journey) -> Journey:
    left = journey.left[1:]
    return replace(journey, left=left, way=Heading.BACK if left else Heading.PUT_BACK)
