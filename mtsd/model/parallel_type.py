"""Kinds of `replica.parallel_type`, as the configuration and the schedule tell them apart."""

from typing import Final

BY_NAMES: Final = frozenset({"database", "table"})
"""Policies that go by the names of databases and tables: these can be bound, pinned and weighed."""
BY_THE_SOURCE: Final = frozenset({"logical_clock", "commit_parent"})
"""Policies that go by what the source has logged of its commits, and by no names.

They have no use for bound databases.
"""
