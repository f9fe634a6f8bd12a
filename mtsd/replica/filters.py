"""The filter of a channel, from its settings and those of the other channels."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from mtsd.config import FilterSettings, Settings
from mtsd.filter.filter import Filter
from mtsd.filter.rules import Rules
from mtsd.model.server import Flavour

_ALONE: Final[Mapping[str, Rules]] = MappingProxyType({})


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
    target: Flavour = Flavour.MYSQL,
    others: Mapping[str, Rules] = _ALONE,
) -> Filter:
    """Return the filter; `fold_case`: the `target` does not distinguish names by case.

    `others` are the rules of other channels with the same source and target, by their names.
    """
    filter_by = partial(
        Filter,
        position_schema=settings.target.schema,
        fold_case=fold_case,
        fold_tables=target is Flavour.MARIADB,
        one_level=target is Flavour.MYSQL,
    )
    filters_of_others = {channel: filter_by(rules) for channel, rules in others.items()}
    return filter_by(rules_of(settings.filter), others=filters_of_others)
