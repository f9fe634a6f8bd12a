"""Lines about the policy: what it can apply in parallel of what this source logs.

And about the consistency: whether mtsd can see who waits for whom.
"""

from collections.abc import Iterator
from typing import Final

from mtsd.apply.session.family import TARGETS
from mtsd.config import Settings
from mtsd.filter.filter import Filter
from mtsd.operations.check.facts import ServerFacts, TargetFacts
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Line, listed
from mtsd.operations.check.lines.server_lines import counted
from mtsd.operations.check.privileges import (
    LOCKS,
    LOCKS_OF_ROWS,
    HeldPrivileges,
    grant,
    missing,
    missing_on,
)
from mtsd.replica.core.apply_mode import keeps_order
from mtsd.replica.core.limits import goes_by_foreign_keys
from mtsd.replica.run.policy_choice import needs_choice, servers_say
from mtsd.schedule.policies.automatic import AUTO, SEQUENTIAL, ChosenPolicy, chosen_policy
from mtsd.source.family import SOURCES
from mtsd.source.logged_order import dependency_tracking

_WHOLE_ROWS: Final = {"binlog_row_image": "FULL", "binlog_row_value_options": ""}
"""The values with which every image of a row has all its columns."""


def choice(
    settings: Settings, source: ServerFacts, target: TargetFacts | None
) -> ChosenPolicy | None:
    """Return what parallel_type = "auto" comes to at the next start; None if it is another one.

    Also None if the target is not known.
    """
    if settings.replica.parallel_type != AUTO:
        return None
    if not needs_choice(settings):
        return SEQUENTIAL
    if target is None:
        return None
    if target.position.chosen is not None:
        return target.position.chosen
    tables = len(target.server.tables)
    whole = len(target.changed_as_whole)
    return chosen_policy(servers_say(settings, source.server, source.variables, tables, whole))


def policy_lines(
    settings: Settings, source: ServerFacts, target: TargetFacts | None, rules: Filter
) -> Iterator[Line]:
    """Yield the lines; none if the policy finds everything that it goes by.

    `source` contains what is replicated, and `rules` the names that it gets.
    """
    replica = settings.replica
    if replica.consistency == "eventual":
        yield from _whole_row_lines(settings, source)
        return
    if not replica.parallel_workers:
        return
    policy = replica.parallel_type
    family = SOURCES[source.flavour]
    has_clock = source.version >= family.clock_since
    if policy == "logical_clock" and not has_clock:
        yield Kind.NO_LOGICAL_CLOCK.line(
            family=source.flavour.value,
            version=".".join(map(str, source.version)),
            instead=family.without_clock,
        )
    elif policy == "logical_clock" and (
        dependency_tracking(source.server, source.variables) == "COMMIT_ORDER"
    ):
        yield Kind.CLOCK_OF_COMMITS.line()
    elif policy == "commit_parent" and source.version < family.commit_parents_since:
        yield Kind.NO_COMMIT_PARENT.line(version=".".join(map(str, source.version)))
    elif policy == "database":
        yield from _foreign_key_lines(settings, source, target)
    elif policy == "row":
        yield from _key_lines(source, target)
    if policy in {"logical_clock", "commit_parent"} and (merged := _merged(source, rules)):
        yield Kind.MERGED_WITHOUT_ORDER.line(databases=listed(merged), policy=policy)


def _merged(source: ServerFacts, rules: Filter) -> list[str]:
    """Return the databases that are one on the target, by the name that they have there."""
    databases = dict.fromkeys(name for name, _ in rules.rules.rewrite_db)
    databases |= dict.fromkeys(table.schema for table in source.tables)
    merged: dict[str, list[str]] = {}
    for name in databases:
        merged.setdefault(rules.folded(rules.target_name(name)), []).append(name)
    return [
        f"{' and '.join(names)} as {rules.target_name(names[0])}"
        for names in merged.values()
        if len(names) > 1
    ]


def _whole_row_lines(settings: Settings, source: ServerFacts) -> Iterator[Line]:
    kind = Kind.NEWER_ROW_NOT_WHOLE if settings.replica.newer_row_column else Kind.ROWS_NOT_WHOLE
    if kind is Kind.ROWS_NOT_WHOLE and keeps_order(settings.replica):
        return
    for setting, whole in _WHOLE_ROWS.items():
        value = source.variables.get(setting, whole)
        if value.upper() != whole:
            yield kind.line(setting=setting, value=value, whole=whole)


def _foreign_key_lines(
    settings: Settings, source: ServerFacts, target: TargetFacts | None
) -> Iterator[Line]:
    if goes_by_foreign_keys(settings.replica, source.flavour):
        there = target.server.foreign_keys_across if target is not None else ()
        keys = list(dict.fromkeys((*there, *source.foreign_keys_across)))
        if keys:
            yield Kind.FOREIGN_KEYS_JOIN.line(
                count=counted(len(keys), "foreign key"), keys=listed(keys)
            )


def _key_lines(source: ServerFacts, target: TargetFacts | None) -> Iterator[Line]:
    image = source.variables.get("binlog_row_image", "FULL")
    if not image.upper().startswith("FULL"):
        yield Kind.KEYS_NOT_LOGGED.line(value=image)
    if target is not None and target.changed_as_whole:
        tables = [f"{name} ({why})" for name, why in target.changed_as_whole.items()]
        yield Kind.CHANGED_AS_WHOLE.line(count=counted(len(tables), "table"), tables=listed(tables))


def commit_order_lines(settings: Settings, target: ServerFacts) -> Iterator[Line]:
    """Yield lines if commits keep the source's order and the target's locks cannot be seen."""
    replica = settings.replica
    if replica.consistency != "any_time" or replica.parallel_workers in {0, 1}:
        return
    observed = target.variables.get("performance_schema", "ON") == "ON"
    if TARGETS[target.flavour].grants_locks_by_table and not observed:
        yield Kind.LOCKS_UNOBSERVED.line()
    held = HeldPrivileges.of(target.grants)
    lacking = missing(held, LOCKS, target.server)
    texts = list(lacking)
    grants = [grant(lacking, target.account)] if lacking else []
    if TARGETS[target.flavour].grants_locks_by_table:
        for schema, names in missing_on(held, LOCKS_OF_ROWS, ["performance_schema"]).items():
            texts.append(f"{', '.join(names)} on {schema}")
            grants.append(grant(names, target.account, schema))
    if texts:
        yield Kind.LOCKS_UNREADABLE.line(
            user=target.account, missing=", ".join(texts), grants="; ".join(grants)
        )
