"""Kinds of `replica.parallel_type`, as the configuration and the schedule tell them apart."""

from collections.abc import Mapping
from typing import Final, Literal, get_args

PolicyName = Literal["database", "table", "logical_clock", "commit_parent", "row"]
"""Every policy that a run can go by."""
POLICY_NAMES: Final[Mapping[str, PolicyName]] = {name: name for name in get_args(PolicyName)}

BY_NAMES: Final = frozenset({"database", "table"})
"""Policies that go by the names of databases and tables: these can be bound, pinned and weighed."""
BY_THE_SOURCE: Final = frozenset({"logical_clock", "commit_parent"})
"""Policies that go by what the source has logged of its commits, and by no names.

They have no use for bound databases.
"""
