"""What `parallel_type = "auto"` comes to: decided from what both servers say.

    a MySQL 9.7 that logs rows                       logical_clock
    a MySQL 8.0 with COMMIT_ORDER, tables with keys  row
    a MariaDB that logs rows, tables with keys       row
    any of these with binlog_format = MIXED          database
    a target without tables, as it was just made     database, and asked again at the next start

It decides how much is applied in parallel. Of keys that only the target has the source's clock does
not know (docs/policies.md), whoever chooses it.
"""

from dataclasses import dataclass
from typing import Final

from mtsd.model.parallel_type import PolicyName

AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class ServersSay:
    """What the choice goes by.

    `source` is the family of the source and its version, in words. `binlog_format` is its variable.
    `tracking` says how it finds out which transactions are independent: WRITESET is by their rows;
    "" if it logs no clock. `merges`: rules make one database of several, of which the source knows
    no order. The target has `tables`, of which `whole` are changed one transaction after another
    under the row policy, because their keys do not tell which of them conflict.
    """

    source: str
    binlog_format: str
    tracking: str
    merges: bool
    tables: int
    whole: int


@dataclass(frozen=True, slots=True)
class ChosenPolicy:
    """A policy, and why it was chosen, as part of a sentence."""

    parallel_type: PolicyName
    because: str
    is_final: bool = True
    """Whether to go on with it at later starts: nothing was missing when it was chosen."""


SEQUENTIAL: Final = ChosenPolicy(
    "database", "there is one worker, or no order to be kept", is_final=False
)
"""Where no policy makes a difference."""


def chosen_policy(both: ServersSay) -> ChosenPolicy:
    """Choose by rows where they tell something, by databases where they do not."""
    if both.binlog_format != "ROW":
        return ChosenPolicy(
            "database",
            f"the source has binlog_format = {both.binlog_format}, and not all as rows",
        )
    if both.tracking == "WRITESET" and not both.merges:
        return ChosenPolicy("logical_clock", f"{both.source} logs which rows transactions share")
    if not both.tables:
        return ChosenPolicy(
            "database", "the target has no tables yet, whose keys would tell", is_final=False
        )
    keyed = f"the keys of {both.tables - both.whole} of {both.tables} tables tell which rows change"
    if 2 * both.whole >= both.tables:
        return ChosenPolicy("database", f"only {keyed}")
    return ChosenPolicy("row", f"{_no_clock(both)}, and {keyed}")


def _no_clock(both: ServersSay) -> str:
    if both.merges and both.tracking == "WRITESET":
        return "filter.rewrite_db makes one database of several"
    if not both.tracking:
        return f"{both.source} does not log which rows transactions share"
    return f"the source has binlog_transaction_dependency_tracking = {both.tracking}"
