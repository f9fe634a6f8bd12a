"""Kinds of `replica.parallel_type`, as the configuration and the schedule tell them apart."""

from typing import Final

BY_THE_SOURCE: Final = frozenset({"logical_clock", "commit_parent"})
"""Policies that go by what the source has logged of its commits, and by no names.

They have no use for bound databases.
"""
