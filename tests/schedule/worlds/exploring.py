"""Small worlds gone through whole: every state of a run, and a restart from what each leaves."""

from collections.abc import Iterable, Sequence

from mtsd.model.group import GroupKind
from tests.schedule.worlds.simulated_run import Mode, RunSettings, SimulatedRun, Step
from tests.schedule.worlds.simulated_target import SimulatedTarget
from tests.schedule.worlds.streams import Marker, Shape, Stream

ROTATE = Marker(new_file=True, previous_gtids=True)
AFTERWARDS = (
    RunSettings(workers=2),
    RunSettings(workers=3, drop_others=True),
    RunSettings(mode=Mode.SEQUENTIAL),
)

_COMMITS = frozenset({Step.COMMIT, Step.COMMIT_FIRST})


def explore(
    stream: Stream,
    target: SimulatedTarget,
    settings: RunSettings,
    *,
    stops: bool = False,
    checkpoints: bool = True,
    run: type[SimulatedRun] = SimulatedRun,
) -> dict[tuple[object, ...], SimulatedTarget]:
    """Go through every state of a run; return the states of the target that a crash can leave.

    With `stops`, try a graceful stop too in each state in which the scheduler knows what the target
    has committed; otherwise it does as before that commit. Without `checkpoints` there are none
    before the end, so far fewer states. A commit is learned at once then: the scheduler is told
    only of what is learned, so it goes through the same states; and what a group has to wait for
    must be committed before it begins, not when another worker's answer has come.
    """
    first = run(stream, target, settings)
    left = {target.key(): target}
    seen = {first.key()}
    open_states = [first]
    while open_states:
        state = open_states.pop()
        if stops and state.is_told:
            stopped = state.fork()
            stopped.stop()
            stopped.finish()
        choices = state.choices()
        if not checkpoints:
            choices = [choice for choice in choices if choice[0] is not Step.COMPUTE]
        if not choices:
            state.fork().finish()
        for number, choice in enumerate(choices):
            follower = state if number + 1 == len(choices) else state.fork()
            follower.step(choice)
            if not checkpoints and choice[0] in _COMMITS:
                follower.step((Step.LEARN, choice[1]))
            key = follower.key()
            if key in seen:
                continue
            seen.add(key)
            open_states.append(follower)
            if follower.target.key() not in left:
                left[follower.target.key()] = follower.target.fork()
    return left


def go_through(items: Sequence[Shape | Marker], settings: RunSettings) -> None:
    """Go through every state of one run without checkpoints."""
    explore(Stream.of(items), SimulatedTarget(), settings, checkpoints=False)


def restart(stream: Stream, target: SimulatedTarget, settings: RunSettings) -> None:
    """Recover and run to the end of the stream."""
    target = target.fork()
    SimulatedRun(stream, target, settings).finish()
    assert set(target.applied) == {g.number for g in stream.groups if g.kind is not GroupKind.EMPTY}


def crash_anywhere_once(shapes: Iterable[Shape | Marker], settings: RunSettings) -> None:
    """Restart from each state that one run can leave."""
    stream = Stream.of(shapes)
    for target in explore(stream, SimulatedTarget(), settings, stops=True).values():
        for afterwards in AFTERWARDS:
            restart(stream, target, afterwards)


def crash_anywhere_again(
    shapes: Iterable[Shape | Marker], several_settings: Sequence[RunSettings]
) -> None:
    """Go through every state of every run from each state that any number of crashes can leave."""
    stream = Stream.of(shapes)
    fresh = SimulatedTarget()
    left = {fresh.key(): fresh}
    open_targets = [fresh]
    while open_targets:
        target = open_targets.pop()
        for settings in several_settings:
            for key, found in explore(stream, target.fork(), settings).items():
                if key not in left:
                    left[key] = found
                    open_targets.append(found)


def name_of(shapes: Iterable[Shape | Marker]) -> str:
    return " ".join(
        ("rotate" if shape.new_file else "stop")
        if isinstance(shape, Marker)
        else shape.kind.value
        if shape.kind is not GroupKind.ROWS
        else "alone"
        if shape.alone
        else "".join(shape.databases)
        for shape in shapes
    )
