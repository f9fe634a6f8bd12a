"""A target, a run and a restart, as far as one group in doubt can see them.

Everything that can happen is a choice: a record that is refused, an effect that fails and leaves
nothing, or a part, a kill before or after any of it. `every_history` goes through all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mtsd.apply.position.position_tables import InDoubt
from mtsd.model.group import GroupKind
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import NOWHERE, Position
from mtsd.model.server import Flavour
from mtsd.replica.recovery.verdict import Logged, Verdict, judge, judge_branch, judge_logged
from mtsd.schedule.doubt import (
    WHOLE,
    Act,
    Effect,
    Forget,
    Keep,
    Note,
    Outcome,
    Settle,
    Transition,
    came_of,
    doubt,
    trace_of_definition,
)

FILE = "binlog.000007"
HALF = GroupKind.NON_TRANSACTIONAL


class Choices:
    """Answers every question by a script, and with the first answer where that has ended."""

    def __init__(self, script: Sequence[int], most_faults: int) -> None:
        self._script = script
        self.asked: list[int] = []
        """How many answers each question had."""
        self.taken: list[int] = []
        self._faults = most_faults

    def of(self, count: int) -> int:
        """Return which of so many answers is given; 0 is the one without a fault."""
        count = count if self._faults else 1
        at = len(self.taken)
        answer = self._script[at] if at < len(self._script) else 0
        self.asked.append(count)
        self.taken.append(answer)
        self._faults -= answer > 0
        return answer


def every_history(live: Callable[[Choices], None], *, most_faults: int) -> int:
    """Live through every history with up to so many faults; return how many there are."""
    histories = 0
    script: list[int] = []
    while True:
        choices = Choices(script, most_faults)
        live(choices)
        histories += 1
        script = choices.taken
        while script and script[-1] + 1 >= choices.asked[len(script) - 1]:
            script = script[:-1]
        if not script:
            return histories
        script = [*script[:-1], script[-1] + 1]


class KilledError(Exception):
    """The run has ended here."""


@dataclass(frozen=True)
class Kind:
    """A kind of group in doubt, on a target that has these traces."""

    kinds: tuple[GroupKind, ...]
    """What the record of each of its effects says."""
    effects: tuple[Effect, ...] = (WHOLE,)
    statement: bytes = b"ALTER TABLE a.t ADD INDEX (i)"
    gtids: bool = False
    logged: bool = False
    may_fail: bool = True
    """Whether its effects can fail and leave nothing."""
    may_leave_a_part: bool = False
    is_streamed: bool = False
    """Whether its end is not known when it begins."""

    @property
    def is_told(self) -> bool:
        """Whether the target always shows what became of it, unless a part remains."""
        return not any(effect.partial for effect in self.effects) and (
            self.gtids
            or self.logged
            or self.statement.startswith(b"CREATE")
            or self.kinds[0] in {GroupKind.XA_PREPARE, GroupKind.XA_COMPLETE}
        )


@dataclass
class World:
    """What the target has of one group."""

    kind: Kind
    choices: Choices
    there: list[int] = field(default_factory=list)
    """How often it has had each effect."""
    has_part: bool = False
    gtids: set[str] = field(default_factory=set)
    log: list[int] = field(default_factory=list)
    """The thread ids of the statements in its binlog."""
    record: InDoubt | None = None
    is_in_row: bool = False
    is_prepared: bool = False
    was_asked: bool = False
    had_part: bool = False
    attempts: int = 0

    def __post_init__(self) -> None:
        self.there = [0 for _ in self.kind.effects]
        self.is_prepared = self.kind.kinds[0] is GroupKind.XA_COMPLETE

    def live(self) -> None:
        """Start again and again until the group is settled, and see that it is there once."""
        while not self.is_in_row:
            try:
                repeats = self._recover()
                while not self.is_in_row:
                    outcome = self._attempt(repeats=repeats)
                    self._check()
                    makes_table = self.kind.kinds[0] is GroupKind.CREATE_SELECT
                    if self.record is not None and not (makes_table or repeats):
                        # It stops: only a restart can tell what to do.
                        raise KilledError
                    if outcome is Outcome.REMAINS:
                        raise KilledError
                    # As the session knows that it has made a table.
                    repeats = self.record is not None
            except KilledError:
                self._check()
        assert self.there == [1 for _ in self.kind.effects]
        assert self.record is None
        assert not self.has_part
        if self.kind.is_told and not self.had_part:
            assert not self.was_asked, "a person was asked what the target shows"

    def _check(self) -> None:
        assert max(self.there) <= 1, "an effect was had twice"
        if self.is_in_row:
            assert min(self.there) == 1, "settled without its effect"
            assert not self.has_part
        elif self.record is None:
            assert not any(self.there), "an effect without a record"
            assert not self.has_part, "a part without a record"

    def _attempt(self, *, repeats: bool) -> Outcome:
        self.attempts += 1
        notes = self._notes(repeats=repeats)
        machine = doubt(self.kind.effects, repeats=repeats)
        step: Transition = next(machine)
        while True:
            answer = self._carry_out(step, notes)
            try:
                step = machine.send(answer)
            except StopIteration as ended:
                outcome: Outcome = ended.value
                return outcome

    def _notes(self, *, repeats: bool) -> list[InDoubt]:
        kind = self.kind
        gtid = "U:7" if kind.gtids and "U:7" not in self.gtids else ""
        place = thread = False
        if kind.kinds[0] in {GroupKind.DDL, GroupKind.CREATE_SELECT}:
            trace = trace_of_definition(
                has_gtid=bool(gtid),
                is_apart=len(kind.effects) > 1,
                repeats=repeats,
                depends_on_thread=False,
            )
            place, thread = trace.place and kind.logged, trace.thread and kind.logged
        elif kind.kinds[0] is HALF:
            place = bool(gtid) and kind.logged
        return [
            InDoubt(
                number=7,
                worker_id=1,
                end=NOWHERE if kind.is_streamed else Position("f", 4),
                kind=each.value,
                evidence=gtid,
                source_gtid="",
                databases="a",
                statement=kind.statement,
                target_file=FILE if place else "",
                target_offset=len(self.log) if place else 0,
                thread=100 + self.attempts if thread else 0,
            )
            for each in kind.kinds
        ]

    def _killed(self, *, after: Callable[[], None]) -> None:
        """Do something, unless the run is killed before or after it."""
        answer = self.choices.of(3)
        if answer != 1:
            after()
        if answer:
            raise KilledError

    def _carry_out(self, step: Transition, notes: Sequence[InDoubt]) -> Outcome:
        if isinstance(step, Note):
            return self._note(step, notes)
        if isinstance(step, Act):
            return self._act(step, notes)
        if isinstance(step, Settle):
            self._killed(after=self._settle)
        elif isinstance(step, Forget):
            self._killed(after=self._forget)
        elif isinstance(step, Keep):
            # It is tried until it succeeds; see the sixth point for a kill before it.
            self.record = InDoubt(7, 1, Position("f", 4), HALF.value, "", "", "a", b"")
            if self.choices.of(2):
                raise KilledError
        return Outcome.DONE

    def _note(self, step: Note, notes: Sequence[InDoubt]) -> Outcome:
        answer = self.choices.of(4)
        if answer == 1:
            raise KilledError
        if answer == 2:
            if step.effect:
                # What is there stays, and a restart goes on from it.
                raise KilledError
            return Outcome.UNDONE
        assert step.over or self.record is None, "a record is there already"
        self.record = notes[step.effect]
        if answer == 3:
            raise KilledError
        return Outcome.DONE

    def _act(self, step: Act, notes: Sequence[InDoubt]) -> Outcome:
        at, kind = step.effect, self.kind
        effect = kind.effects[at]
        assert self.record is not None, "an effect begins without a record"
        answer = self.choices.of(4 + kind.may_fail + kind.may_leave_a_part)
        if answer == 1:
            raise KilledError
        if answer == 4 and kind.may_fail:
            return came_of(leaves_changes=False, has_trace=False, says_done=False)
        if answer >= 4 or (answer == 3 and effect.partial):
            self.has_part = self.had_part = True
            if effect.partial:
                self._leave_trace(notes[at])
            if answer == 3:
                raise KilledError
            return came_of(leaves_changes=True, has_trace=False, says_done=False)
        if self.there[at] and kind.statement.startswith(b"CREATE"):
            return came_of(leaves_changes=False, has_trace=False, says_done=True)
        self.there[at] += 1
        if kind.kinds[at] is GroupKind.XA_PREPARE:
            self.is_prepared = True
        elif kind.kinds[at] is GroupKind.XA_COMPLETE:
            assert self.is_prepared
            self.is_prepared = False
        self._leave_trace(notes[at])
        if effect.settles:
            self._settle()
        if answer:
            raise KilledError
        return Outcome.DONE

    def _leave_trace(self, note: InDoubt) -> None:
        if note.evidence:
            assert note.evidence not in self.gtids, "passed over: its GTID is used up"
            self.gtids.add(note.evidence)
        self.log.append(note.thread)

    def _settle(self) -> None:
        assert self.record is not None
        self.record = None
        self.is_in_row = True

    def _forget(self) -> None:
        assert self.record is not None
        self.record = None

    def _recover(self) -> bool:
        """Do what a restart does; return whether the group may have been applied."""
        if self.record is None:
            return False
        verdict = self._verdict(self.record)
        if verdict is Verdict.SHOWS_ITSELF:
            return True
        if self.choices.of(2):
            raise KilledError
        if verdict is Verdict.APPLIED:
            self._settle()
        else:
            assert verdict is Verdict.NOT_APPLIED
            self._forget()
        self._check()
        return False

    def _verdict(self, record: InDoubt) -> Verdict:
        executed = record.evidence in self.gtids
        found = judge(record, executed=executed, logs=None)
        if found is Verdict.LOGGED:
            own = record.thread in self.log[record.target_offset :]
            found = judge_logged(
                record,
                Logged(own=own, restarted=False, recovered=()),
                Flavour.MYSQL,
                None,
            )
        if found is Verdict.NOT_BEGUN or found is Verdict.NOT_COMMITTED:
            return Verdict.NOT_APPLIED
        if found is Verdict.PREPARED or found is Verdict.COMPLETED:
            branch = judge_branch(record, found, prepared=self.is_prepared)
            if branch.verb:
                self.is_prepared = False
            if branch.verb == b"ROLLBACK":
                self.there[0] = 0
            elif branch.verb:
                self.there[1] += 1
            return branch.verdict
        return self._asked() if isinstance(found, Refused) else found

    def _asked(self) -> Verdict:
        """Do what a person does who looks at the target."""
        self.was_asked = True
        there = all(self.there) and not self.has_part
        if not there and (self.has_part or any(self.there)) and not self.choices.of(2):
            self.there = [1 for _ in self.there]
            there = True
        self.has_part = False
        if not there:
            self.there = [0 for _ in self.there]
        return Verdict.APPLIED if there else Verdict.NOT_APPLIED
