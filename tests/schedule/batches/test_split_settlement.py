"""What a restart does with a split transaction: in small worlds, everything remains or nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations, product

import pytest

from mtsd.schedule.batches.split_settlement import settle


@dataclass
class World:
    """A target, and what has been recorded there."""

    branches: int
    recorded: bool = False
    decided: bool = False
    open: set[int] = field(default_factory=set)
    prepared: set[int] = field(default_factory=set)
    committed: set[int] = field(default_factory=set)
    settled: bool = False

    def crash(self) -> None:
        """Lose what is not prepared."""
        self.open.clear()

    def recover(self, steps: int) -> bool:
        """Carry out so many steps of the settlement; return whether that was all."""
        if self.settled or not self.recorded:
            return True
        todo = settle(
            self.branches,
            decided=self.decided,
            prepared=self.prepared,
            committed=self.committed,
        )
        assert not todo.lost
        assert not (todo.commit and todo.roll_back)
        left = [(branch, True) for branch in todo.commit]
        left += [(branch, False) for branch in todo.roll_back]
        for branch, commits in left[:steps]:
            self.prepared.remove(branch)
            if commits:
                self.committed.add(branch)
        if steps <= len(left):
            return False
        self.settled = todo.applied
        self.recorded = False
        return True


def runs(branches: int) -> Iterator[list[tuple[str, int]]]:
    """Yield every order in which the branches can go through the protocol."""
    for first, second, third in product(permutations(range(branches)), repeat=3):
        yield [
            ("record", 0),
            *(("begin", branch) for branch in first),
            *(("prepare", branch) for branch in second),
            ("decide", 0),
            *(("commit", branch) for branch in third),
            ("settle", 0),
        ]


def step(world: World, what: str, branch: int) -> None:
    if what == "record":
        world.recorded = True
    elif what == "begin":
        world.open.add(branch)
    elif what == "prepare":
        world.open.remove(branch)
        world.prepared.add(branch)
    elif what == "decide":
        world.decided = True
    elif what == "commit":
        world.prepared.remove(branch)
        world.committed.add(branch)
    else:
        world.settled = True
        world.recorded = False


@pytest.mark.parametrize("branches", [1, 2, 3])
def test_every_crash_leaves_all_or_nothing(branches: int) -> None:
    for run in runs(branches):
        for crash_after in range(len(run) + 1):
            for crash_of_recovery in range(branches + 2):
                world = World(branches)
                for what, branch in run[:crash_after]:
                    step(world, what, branch)
                world.crash()
                if not world.recover(crash_of_recovery):
                    assert world.recover(branches + 1)
                assert not world.prepared
                assert len(world.committed) == (branches if world.settled else 0)
                assert world.settled is (("decide", 0) in run[:crash_after])


def test_what_others_have_done_is_not_taken_for_applied() -> None:
    rolled_back = settle(3, decided=True, prepared={0}, committed={1})
    assert rolled_back.lost == (2,)
    committed = settle(3, decided=False, prepared={0}, committed={1})
    assert committed.lost == (1,)
