"""`mtsd switchover`: the writers go to the target, and replication turns round."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from mtsd.config import Settings
from mtsd.model.errors import NeedsPersonError
from mtsd.model.outcome.reason import Refused, refuse
from mtsd.operations.check.privileges import WRITES_ALTHOUGH_READ_ONLY
from mtsd.operations.move.accounts import Accounts, lacking, read_accounts
from mtsd.operations.move.admin import (
    ENABLES_EVENTS,
    ENDS_SESSIONS,
    OWN_USER,
    SETS_READ_ONLY,
    STOPS_EVENTS,
    Admin,
    AdminPart,
    AdminSession,
    admin_endpoint,
    require_rights,
)
from mtsd.operations.move.carrying_out import Hands, answered_within, carry_out, put_back
from mtsd.operations.move.daemons import DaemonOf
from mtsd.operations.move.how import HowToMove
from mtsd.operations.move.one_sided import (
    events_that_go_on,
    filtered,
    more_sources,
    other_channels,
    read_definers,
    read_events,
    schedules,
)
from mtsd.operations.move.own_channel import words_of
from mtsd.operations.move.own_settings import Difference, require_accepted, told
from mtsd.operations.move.record import Record
from mtsd.operations.move.switch_work import SwitchWishes, SwitchWork, read_opened
from mtsd.operations.move.switching import (
    NO_LOG,
    NOT_CROSSED,
    RUNS_BACK,
    Switch,
    daemon_refusals,
    opened_differences,
    own_replica_refusals,
    put_back_refusals,
    steps_of,
    undoing_of,
)
from mtsd.operations.move.writers import (
    IGNORES_READ_ONLY,
    cut_off,
    privileged,
    read_writers,
    unstoppable,
)
from mtsd.operations.recorded import read_fence_of, read_recorded
from mtsd.replica.core.endpoints import endpoint
from mtsd.wire.replica_status import own_channels
from mtsd.wire.traits import ServerTraits, read_traits


@dataclass(frozen=True, slots=True)
class SwitchAdmins:
    """The accounts for the server that is written to, and for the one that is to be."""

    source: Admin | None
    target: Admin | None


async def switchover(
    forth: DaemonOf,
    back: DaemonOf,
    admins: SwitchAdmins,
    wishes: SwitchWishes,
    how: HowToMove,
    tell: Callable[[str], None],
) -> str:
    """Switch, or only say how; return the line that proves it, "" if nothing was done.

    Raises NeedsPersonError if it is refused, or has failed and was put back; ServerError,
    ConnectionLostError.
    """
    settings = forth.replication.settings
    source = AdminSession(admin_endpoint("source", settings.source, admins.source), how.timeout)
    target = AdminSession(admin_endpoint("target", settings.target, admins.target), how.timeout)
    try:
        async with answered_within(how.timeout):
            await source.claim(keep=how.execute)
            await target.claim(keep=how.execute)
            traits = (
                await read_traits(await source.connection()),
                await read_traits(await target.connection()),
            )
            events = await read_events(target, "%SIDE_DISABLED") if wishes.events else ()
            switch = Switch(
                forth.replication.config.name,
                back.replication.config.name,
                await read_opened(source),
                await read_opened(target),
                tuple(each.name for each in events),
                kill=wishes.kill,
                # One that was killed has left it off.
                scheduler=bool(events) and await schedules(source) != wishes.put_back,
            )
        work = SwitchWork(forth, back, (source, target), traits, wishes)
        steps = steps_of(switch)
        hands = Hands({"source": source, "target": target}, work.tasks)
        if wishes.put_back:
            return await _put_back(switch, (forth, back), work, hands, how, tell)
        async with answered_within(how.timeout):
            if how.execute:
                kills = ENDS_SESSIONS if wishes.kill else ()
                stops = STOPS_EVENTS if switch.scheduler else ()
                enables = ENABLES_EVENTS if wishes.events else ()
                of_back = admin_endpoint("target", back.replication.settings.target, None)
                with closing(AdminSession(of_back, how.timeout)) as own:
                    # It would be found out in the pause, when the source is read only.
                    writes = WRITES_ALTHOUGH_READ_ONLY
                    await require_rights(
                        AdminPart(
                            "source", source, traits[0].server, (*SETS_READ_ONLY, *kills, *stops)
                        ),
                        AdminPart("target", target, traits[1].server, (*SETS_READ_ONLY, *enables)),
                        AdminPart("source", own, traits[0].server, writes, OWN_USER),
                    )
            without = _users(forth, back, admins)
            accounts = (await read_accounts(source, without), await read_accounts(target, without))
            if IGNORES_READ_ONLY not in how.accepted:
                work.privileged = privileged(accounts[0])
            enabled = () if wishes.events else await read_events(source, "ENABLED")
            differing = [
                *await _looked(forth, back, (source, target), traits, wishes, switch, accounts),
                *events_that_go_on(enabled, await read_definers(source, enabled)),
            ]
        if how.execute:
            require_accepted(differing, how.accepted)
        record = Record(tell, how.report if how.execute else None)
        record.say(
            f"writers go from {settings.source.address} to {settings.target.address}, and"
            f" {switch.back} leads back"
        )
        for line in told(differing, how.accepted):
            record.say(line)
        if enabled:
            record.say(
                f"{len(enabled)} events are enabled on the source, and go on there if their"
                " definers may write to a server that is read only: --enable-events lets the"
                " target run them instead"
            )
        if not how.execute:
            record.plan(steps)
            return ""
        await carry_out(steps, hands, record, how.timeout)
        record.say(work.proof)
        return work.proof
    finally:
        source.close()
        target.close()


async def _looked(
    forth: DaemonOf,
    back: DaemonOf,
    sessions: tuple[AdminSession, AdminSession],
    traits: tuple[ServerTraits, ServerTraits],
    wishes: SwitchWishes,
    switch: Switch,
    accounts: tuple[Accounts, Accounts],
) -> list[Difference]:
    """Return what is strange and not dangerous. Raises NeedsPersonError for what is dangerous."""
    settings = forth.replication.settings
    refused = await _refusals(forth, back, traits, wishes)
    followed = await own_channels(await sessions[0].connection(), traits[0].server)
    refused += own_replica_refusals(settings.source.address, followed)
    if refused:
        raise NeedsPersonError("; ".join(map(str, refused)))
    own = await own_channels(await sessions[1].connection(), traits[1].server)
    both = [each.replication for each in (forth, back)]
    return [
        *opened_differences(switch.source, switch.target),
        *filtered((each.config.name, each.settings.filter) for each in both),
        *more_sources(own, await other_channels(settings)),
        *await _differences(settings, sessions, traits, wishes, accounts),
    ]


async def _refusals(
    forth: DaemonOf,
    back: DaemonOf,
    traits: tuple[ServerTraits, ServerTraits],
    wishes: SwitchWishes,
) -> list[Refused]:
    settings, config = forth.replication.settings, forth.replication.config.name
    status = await forth.status()
    found = daemon_refusals(config, status, settings.replica.delay, wishes.max_lag)
    other = back.replication.config.name
    status = await back.status()
    if status is not None and status.state != "standby":
        found.append(refuse(RUNS_BACK, file=other))
    if not traits[1].log_bin:
        found.append(refuse(NO_LOG, address=settings.target.address))
    crossed = back.replication.settings
    for role, section, here in (
        ("source", crossed.source, traits[1]),
        ("target", crossed.target, traits[0]),
    ):
        session = AdminSession(endpoint(role, section))
        try:
            there = await read_traits(await session.connection())
        finally:
            session.close()
        if there.uuid != here.uuid:
            where = f"{here.place} ({here.uuid})"
            said = f"{there.place} ({there.uuid})"
            found.append(refuse(NOT_CROSSED, file=other, role=role, there=said, here=where))
    return found


async def _differences(
    settings: Settings,
    sessions: tuple[AdminSession, AdminSession],
    traits: tuple[ServerTraits, ServerTraits],
    wishes: SwitchWishes,
    accounts: tuple[Accounts, Accounts],
) -> list[Difference]:
    writers = await read_writers(sessions[0])
    found = [
        *cut_off(writers, wishes.longest),
        *unstoppable(writers.sessions, privileged(accounts[0])),
    ]
    families = [words_of(each.server).follows_variable for each in traits]
    found += lacking(accounts[0], accounts[1], same_family=families[0] == families[1])
    recorded = await read_recorded(settings)
    if recorded is not None and recorded.prepared:
        found.append(
            Difference(
                "prepared",
                f"{recorded.prepared} XA transactions are prepared on the target, which the source"
                " has not completed: they keep their locks there",
            )
        )
    return found


def _users(forth: DaemonOf, back: DaemonOf, admins: SwitchAdmins) -> frozenset[str]:
    """Return the users that belong to replication, or to this command."""
    both = (forth.replication.settings, back.replication.settings)
    own = {section.user for each in both for section in (each.source, each.target)}
    return frozenset(own | {each.user for each in (admins.source, admins.target) if each})


async def _put_back(
    switch: Switch,
    ways: tuple[DaemonOf, DaemonOf],
    work: SwitchWork,
    hands: Hands,
    how: HowToMove,
    tell: Callable[[str], None],
) -> str:
    """Put back a switch whose command was killed, if the application was not let in."""
    if not switch.target.read_only:
        raise NeedsPersonError(
            "the target is writable: the application may have written there, so nothing can be put"
            " back; mtsd switchover --back switches to the other server"
        )
    fences = [await read_fence_of(each.replication.settings) for each in ways]
    forth, back = ["" if each is None else each.to for each in fences]
    refused = put_back_refusals(switch, forth, back, is_back=work.is_back)
    if refused:
        raise NeedsPersonError("; ".join(map(str, refused)))
    record = Record(tell, how.report if how.execute else None)
    undoing = undoing_of(switch)
    if not how.execute:
        record.plan((undoing,))
        return ""
    await work.assume_all()
    await put_back(undoing, hands, record, how.timeout)
    proof = "put back: writers are on the source again, and replication goes on as before"
    record.say(proof)
    return proof
