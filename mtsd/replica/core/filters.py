"""The filter of a channel, from its settings and those of the other channels."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from mtsd.apply.session.family import TARGETS
from mtsd.config import FilterSettings, Settings
from mtsd.filter.filter import Filter
from mtsd.filter.rules import Rules
from mtsd.model.server import ServerVersion
from mtsd.wire.family import SERVERS

_ALONE: Final[Mapping[str, Rules]] = MappingProxyType({})


def rows_need_grants(server: ServerVersion) -> bool:
    """Return whether a server applies BINLOG's rows only to tables that its user may change."""
    return server.number >= TARGETS[server.flavour].grants_count_since


def rules_of(given: FilterSettings) -> Rules:
    """Return the rules that are set."""
    return Rules(
        do_db=given.do_db,
        ignore_db=given.ignore_db,
        do_table=given.do_table,
        ignore_table=given.ignore_table,
        wild_do_table=given.wild_do_table,
        wild_ignore_table=given.wild_ignore_table,
        rewrite_db=given.rewrite_db,
    )


def filter_of(
    settings: Settings,
    *,
    fold_case: bool,
    target: ServerVersion,
    others: Mapping[str, Rules] = _ALONE,
) -> Filter:
    """Return the filter for a `target`; `fold_case`: it does not distinguish names by case.

    `others` are the rules of other channels with the same source and target, by their names.
    """
    filter_by = partial(
        Filter,
        position_schema=settings.target.schema,
        fold_case=fold_case,
        fold_tables=SERVERS[target.flavour].rules_ignore_case,
        one_level=SERVERS[target.flavour].rules_stop_at_databases,
        refuse_system_rows=settings.filter.system_schemas == "refuse"
        and not rows_need_grants(target),
    )
    filters_of_others = {channel: filter_by(rules) for channel, rules in others.items()}
    return filter_by(rules_of(settings.filter), others=filters_of_others)
