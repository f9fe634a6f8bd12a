"""Runs of groups that share their records: every history of a few of them, and of its restarts.

The target runs the statements of a packet one after another, whether mtsd is alive or not, and
stops at the first that fails. Its session may end between any two, and it may be killed in any.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.model.group import GroupKind
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.outcome.reason import Refused
from mtsd.model.position import Position
from mtsd.model.server import Flavour
from mtsd.replica.recovery.recovery import unsettled
from mtsd.replica.recovery.verdict import Logged, Verdict, judge, judge_logged
from mtsd.schedule.done.worker_row import blank_row
from mtsd.schedule.doubt import Act, Keep, NoteAll, Outcome, RunTransition, run_of_doubts
from tests.schedule.doubtful_world import Choices, KilledError, every_history

START = Position("f", 4)
LOG = "binlog.000007"
ROW = 0


@dataclass
class World:
    """A target that groups 1, 2, … are applied to; those of `lasting` cannot be rolled back."""

    groups: int
    lasting: frozenset[int]
    logged: bool
    choices: Choices
    there: dict[int, int] = field(default_factory=dict)
    """How often it has each group, whole."""
    parts: set[int] = field(default_factory=set)
    placed: set[int] = field(default_factory=set)
    """The groups that the worker's row has."""
    mark: int = 0
    records: dict[int, InDoubt] = field(default_factory=dict)
    log: list[int] = field(default_factory=list)
    """Rows that cannot be rolled back, by their groups, and `ROW`, the worker's."""
    restarted: bool = False
    """Whether the target has been, since the last packet began."""
    may_be_asked: bool = False

    def live(self) -> None:
        """Start again and again until all groups are settled, and see that each is there once."""
        while self._left():
            try:
                self._recover()
                while left := self._left():
                    self._packet(left)
                    self._checkpoint()
            except KilledError:
                self._check()
        self._check()

    def _left(self) -> list[int]:
        return [number for number in range(1, self.groups + 1) if number not in self.placed]

    def _check(self) -> None:
        for number in range(1, self.groups + 1):
            count = self.there.get(number, 0)
            assert count <= 1, "applied twice"
            if number in self.placed:
                assert count == 1, "settled without its effect"
                assert number not in self.parts
            elif number not in self.records:
                assert not count, "an effect without a record"
                assert number not in self.parts, "a part without a record"

    def _packet(self, left: list[int]) -> None:
        """Apply what is left, in one packet."""
        lasting = [number for number in left if number in self.lasting]
        self.restarted = False
        statements = self._statements(left)
        if self.choices.of(2):
            # Only the target goes on.
            self._note(lasting)
            for outcome in statements:
                if outcome is not Outcome.DONE:
                    break
            raise KilledError
        machine = run_of_doubts(len(lasting), settles=True)
        step: RunTransition = next(machine)
        outcome = Outcome.DONE
        while True:
            answer = Outcome.DONE
            if isinstance(step, NoteAll):
                self._killed(lambda: self._note(lasting))
            elif isinstance(step, Act):
                number = lasting[step.effect]
                while number not in self.placed and outcome is Outcome.DONE:
                    outcome = next(statements)
                of_another = outcome is Outcome.REMAINS and number not in self.parts
                answer = Outcome.UNDONE if of_another else outcome
            elif isinstance(step, Keep):
                self._keep(lasting[step.effect])
            else:
                gone = {*lasting[: step.done], *lasting[step.forgotten :]}
                self._killed(partial(self._forget, gone))
            try:
                step = machine.send(answer)
            except StopIteration:
                break
        if outcome is Outcome.DONE:
            for outcome in statements:
                if outcome is not Outcome.DONE:
                    break
        if self.parts:
            # It stops: only a person can tell what to do.
            raise KilledError

    def _killed(self, after: Callable[[], None]) -> None:
        """Do something, unless the run is killed before or after it."""
        answer = self.choices.of(3)
        if answer != 1:
            after()
        if answer:
            raise KilledError

    def _note(self, numbers: list[int]) -> None:
        for number in numbers:
            assert number not in self.records, "a record is there already"
            self.records[number] = InDoubt(
                number, 1, START, GroupKind.NON_TRANSACTIONAL.value, "", "", "a", b"",
                LOG if self.logged else "", len(self.log), 7,
            )  # fmt: skip

    def _forget(self, numbers: set[int]) -> None:
        for number in numbers:
            self.records.pop(number, None)

    def _keep(self, number: int) -> None:
        # It is tried until it succeeds; see the sixth point of `doubt` for a kill before it.
        self.records[number] = replace(self.records[number], target_file="", thread=0)
        if self.choices.of(2):
            raise KilledError

    def _statements(self, left: list[int]) -> Iterator[Outcome]:
        """Run the statements of the packet, each a group with its place in the worker's row."""
        for number in left:
            lasts = number in self.lasting
            assert not lasts or number in self.records, "an effect begins without a record"
            answer = self.choices.of(4 + 2 * lasts)
            if answer == 1:
                # The session ends before it.
                raise KilledError
            if answer == 2:
                yield Outcome.UNDONE
                return
            if answer == 3:
                self.parts |= {number} if lasts else set()
                self.may_be_asked = self.restarted = True
                raise KilledError
            if answer == 4:
                self.parts.add(number)
                self.log.append(number)
                self.may_be_asked = True
                yield Outcome.REMAINS
                return
            self.there[number] = self.there.get(number, 0) + 1
            if answer == 5:
                # The target is killed before it commits.
                self.may_be_asked = self.restarted = True
                raise KilledError
            self.log += [number, ROW] if lasts else [ROW]
            self.placed.add(number)
            yield Outcome.DONE

    def _checkpoint(self) -> None:
        """Store a low-water mark, or not; then the records that it has passed go."""
        if self.choices.of(2):
            return
        while self.mark + 1 in self.placed:
            self.mark += 1
        self._forget({number for number in self.records if number <= self.mark})

    def _recover(self) -> None:
        """Do what a restart does."""
        row = blank_row(1, LowWaterMark(self.mark, START, None))
        past = [number for number in self.placed if number > self.mark]
        row = replace(row, executed=row.executed.with_numbers(past))
        records = list(self.records.values())
        applied = []
        in_doubt = unsettled(records, LowWaterMark(self.mark, START, None), [row])
        assert len(in_doubt) <= 1, "what comes later in a run has not begun"
        for record in in_doubt:
            verdict = self._verdict(record)
            if verdict is Verdict.APPLIED:
                applied.append(record.number)
            else:
                assert verdict is Verdict.NOT_APPLIED
        if self.choices.of(2):
            raise KilledError
        self.placed.update(applied)
        self.records.clear()
        self._check()

    def _verdict(self, record: InDoubt) -> Verdict:
        found = judge(record, executed=False, logs=[LOG])
        if found is Verdict.LOGGED:
            rows = [each for each in self.log[record.target_offset :] if not self.restarted]
            logged = Logged(bool(rows) and rows[-1] is not ROW, self.restarted, ())
            found = judge_logged(record, logged, Flavour.MYSQL, (9, 7, 0))
        return self._asked(record.number) if isinstance(found, Refused) else found

    def _asked(self, number: int) -> Verdict:
        """Do what a person does who looks at the target."""
        assert self.may_be_asked or not self.logged, "a person was asked what the target shows"
        assert number in self.lasting
        if number in self.parts:
            self.parts.remove(number)
            if not self.choices.of(2):
                self.there[number] = 1
        return Verdict.APPLIED if self.there.get(number) else Verdict.NOT_APPLIED


@pytest.mark.parametrize("logged", [True, False], ids=["logged", "not logged"])
@pytest.mark.parametrize("lasting", [{1, 2, 3}, {1, 3}, {2}])
def test_every_history_applies_each_once(lasting: set[int], *, logged: bool) -> None:
    def live(choices: Choices) -> None:
        World(3, frozenset(lasting), logged, choices).live()

    assert every_history(live, most_faults=3) > 1000
