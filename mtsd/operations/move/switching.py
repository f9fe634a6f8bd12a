"""The steps of a switch of the writers, and what keeps one from beginning: nothing here waits.

`source` and `target` are those of the replication that runs now. What is applied must be complete
before the way back begins, and the way back must run before the application is let in: so there is
no moment in which a write could be lost, or be on the new server only.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from mtsd.control.status import Status
from mtsd.model.outcome.reason import Reason, Refused, refuse
from mtsd.operations.move.own_settings import Difference
from mtsd.operations.move.steps import Act, MoveStatement, MoveStep, Task
from mtsd.wire.replica_status import ReplicaStatus

STOPPED = Reason(
    "the daemon of {file} does not run",
    "start it, and switch once it has caught up; after a switch that was killed, put that back with"
    " --put-back",
)
NOT_RUNNING = Reason(
    "the daemon of {file} is {state}: {error}", "switch once it runs and has caught up"
)
LATE = Reason(
    "the daemon of {file} is {lag:.1f} s behind, more than {most:g} s",
    "switch once it has caught up, or at a quieter time (--max-lag)",
)
DELAYED = Reason(
    "[replica] delay of {file} is {delay} s", "set it to 0, so that the target is up to date"
)
RUNS_BACK = Reason(
    "the daemon of {file}, which is the way back, runs already",
    "stop it: it may only stand by (mtsd run --standby) until the target is complete",
)
NO_LOG = Reason(
    "the target {address} writes no binary log, so that nothing leads back from it",
    "start it with log_bin",
)
NOT_CROSSED = Reason(
    "{file} does not lead back: its {role} is {there}, and not {here}",
    "give it [source] and [target] of the other file, exchanged",
)


OTHER_WAY = Reason(
    "a switch in the other direction was under way, so that {file} must not apply, and its source"
    " may lack what was written last",
    "repeat the options of that switch: {remedy}",
)
FOLLOWS = Reason(
    "the server's own replica runs on the source {address} (channel {channel!r}, from {source}):"
    " it writes there although that is read only",
    "STOP REPLICA there first, or switch the server that it reads from",
)
BY_A_SWITCH: Final = "the other direction, by a switch"
"""Who applies in the stead of a direction that a switch has ended."""
TILL_A_SWITCH: Final = "the other direction, until a switch"
"""Who applies in the stead of a direction that a switch, or its undoing, has kept in reserve."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Whether a server is read only; `super_read_only` is None where there is no such thing."""

    read_only: bool
    super_read_only: bool | None

    def shut(self) -> str:
        """Return the statement after which nobody writes."""
        if self.super_read_only is None:
            return "SET GLOBAL read_only = ON"
        return "SET GLOBAL super_read_only = ON"

    def for_replica(self) -> str:
        """Return the statement after which only a replica writes; "" if that is so already."""
        return "" if self.super_read_only is None else "SET GLOBAL super_read_only = OFF"

    def as_before(self) -> str:
        """Return the statement that brings this state back from `shut`, or from writable."""
        if not self.read_only:
            return "SET GLOBAL read_only = OFF"
        return self.shut() if self.super_read_only else "SET GLOBAL read_only = ON"


OPEN: Final = "SET GLOBAL read_only = OFF"
_SCHEDULER: Final = (
    MoveStatement.plain("source", "SET GLOBAL event_scheduler = OFF"),
    MoveStatement.plain("source", "SET GLOBAL event_scheduler = ON"),
)


@dataclass(frozen=True, slots=True)
class Switch:
    """What decides a switch: both servers, and both daemons by the files of their settings."""

    forth: str
    back: str
    source: Opened
    target: Opened
    events: tuple[str, ...] = ()
    """Names of the target's events that are to be enabled, quoted."""
    kill: bool = False
    """Sessions of the source that run for long are ended."""
    scheduler: bool = False
    """The source runs its events, until the target runs them instead."""


def daemon_refusals(
    config: str, status: Status | None, delay: int, most_lag: float
) -> list[Refused]:
    """Return why the daemon that runs now has not everything that a switch needs."""
    if status is None:
        return [refuse(STOPPED, file=config)]
    if delay:
        return [refuse(DELAYED, file=config, delay=delay)]
    if status.state != "running" or status.lag_seconds is None:
        error = status.last_error or status.doing or "a server is not connected"
        return [refuse(NOT_RUNNING, file=config, state=status.state, error=error)]
    if status.lag_seconds > most_lag:
        return [refuse(LATE, file=config, lag=status.lag_seconds, most=most_lag)]
    return []


def own_replica_refusals(address: str, channels: Iterable[ReplicaStatus]) -> list[Refused]:
    """Return why a source that replicates itself cannot be made read only."""
    return [
        refuse(FOLLOWS, address=address, channel=each.channel, source=f"{each.host}:{each.port}")
        for each in channels
        if each.applying
    ]


def put_back_refusals(switch: Switch, forth: str, back: str, *, is_back: bool) -> list[Refused]:
    """Return why a switch of this direction was not the one that was killed.

    `forth` and `back` are who applies in the stead of each direction; "": nobody. A switch keeps
    the way back in reserve before all else, and ends the way there only later:

        config.toml     back.toml       the switch that was under way
        nobody          till a switch   forth
        by a switch     till a switch   forth
        by a switch     nobody          forth, complete but for letting the application in
        till a switch   nobody          back
    """
    remedy = "leave out --back" if is_back else "add --back"
    if forth == TILL_A_SWITCH or (back == BY_A_SWITCH and switch.source.read_only):
        return [refuse(OTHER_WAY, file=switch.forth, remedy=remedy)]
    return []


def opened_differences(source: Opened, target: Opened) -> list[Difference]:
    """Return what is strange about who may write now."""
    found = []
    if source.read_only:
        found.append(
            Difference("source_read_only", "the source is read only already: nobody writes there")
        )
    if not target.read_only:
        found.append(
            Difference(
                "target_writable",
                "the target is not read_only: the application may have written there",
            )
        )
    return found


def steps_of(switch: Switch) -> tuple[MoveStep, ...]:
    """Return the steps of a switch."""
    shut = MoveStatement.plain("source", switch.source.shut())
    opened = MoveStatement.plain("source", switch.source.as_before())
    for_replica = switch.source.for_replica()
    keep = [MoveStatement.plain("source", for_replica)] if for_replica else []
    first = [Task("cut off", "ends the sessions that run for long")] if switch.kill else []
    # An event whose definer is an admin writes as soon as mtsd may, when nothing of it reaches the
    # target any more.
    scheduler = [_SCHEDULER] if switch.scheduler else []
    steps = [
        MoveStep(
            "the way back stands by",
            (
                Task("rehearse", f"sees that {switch.back} can begin, and fences it off till then"),
                Task("start back", "starts its daemon, and waits until it stands by"),
            ),
            (
                Task("stop back", f"stops the daemon of {switch.back}"),
                Task("forget back", f"{switch.back} does not start any more"),
                # Not before: it would take whoever holds a lock of the way back for its daemon,
                # and refuse to go round in a circle.
                Task("restart", f"starts the daemon of {switch.forth}"),
                # Not before: until here, nobody waits for a daemon to be able to write.
                Task("goes on", f"waits until the daemon of {switch.forth} runs"),
            ),
        ),
        MoveStep(
            "no more writes on the source: the pause begins",
            (*first, *(rests for rests, _ in scheduler), shut),
            (opened, *(runs for _, runs in scheduler)),
        ),
        MoveStep(
            "the last transaction",
            (
                Task("applied", "waits until the target has all of the source"),
                Task("quiet", "waits until no transaction is left open on the source"),
            ),
        ),
        MoveStep(
            "replication ends in this direction",
            (
                Task("stop", f"stops the daemon of {switch.forth}"),
                Task(
                    "fence",
                    "compares its position with the end of the source: it does not start any more",
                ),
            ),
            (Task("unfence", f"{switch.forth} may start again"),),
        ),
        MoveStep(
            "the way back begins",
            (
                *keep,
                Task("begin", f"sets the position of {switch.back} to the end of the target"),
                Task("wake", "wakes its daemon, and waits until it has caught up"),
            ),
            # Before the other direction starts again.
            (Task("stop back", f"stops the daemon of {switch.back}"),),
        ),
        MoveStep(
            "the application is let in: the pause ends",
            (MoveStatement.plain("target", OPEN),),
            (MoveStatement.plain("target", switch.target.as_before()),),
            final=True,
        ),
        MoveStep("compare", (Task("prove", "says how long that was"),)),
    ]
    if switch.events:
        statements = [f"ALTER EVENT {name} ENABLE" for name in switch.events]
        acts: list[Act] = [MoveStatement.plain("target", each) for each in statements]
        for _, runs in scheduler:
            acts += [Task("events gone", "waits until that has disabled them on the source"), runs]
        steps.append(MoveStep("enable the events", tuple(acts)))
    return tuple(steps)


def undoing_of(switch: Switch) -> MoveStep:
    """Return what puts a switch back whose command was killed, wherever that was.

    The source was writable before. Nothing may have been let in: the target is read only still.
    """
    before = replace(switch.source, read_only=False)
    steps = steps_of(replace(switch, source=before, events=()))
    undone = [step for step in steps if not step.final]
    left = tuple(act for step in reversed(undone) for act in step.undo)
    return MoveStep("put back what a switch has left", left)
