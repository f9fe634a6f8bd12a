"""What a group changes and needs, so that it can be told which others it may conflict with."""

from collections.abc import Hashable
from typing import Final, final


@final
class GroupKeys:
    """Keys of rows, tables and databases, each as a number; two with the same number are one.

    A number stands for what it is named by and for the values: of different keys, a few may share
    one, which makes groups wait that need not. Two groups may conflict if one has in `rows` what
    the other has in `rows` or `references`, or in `wholes` what the other has in `wholes` or
    `parts`. It never changes; as a dataclass it would cost several times as much, and one is
    created for nearly every transaction. As nothing is calculated with the numbers, their type says
    only what is done with them, so that compiled code need not convert each one back and forth.
    """

    __slots__ = ("parts", "references", "rows", "wholes")

    def __init__(
        self,
        rows: tuple[Hashable, ...] = (),
        references: tuple[Hashable, ...] = (),
        wholes: tuple[Hashable, ...] = (),
        parts: tuple[Hashable, ...] = (),
    ) -> None:
        self.rows: Final = rows
        """Values of unique and referenced keys of the rows that it changes, before and after."""
        self.references: Final = references
        """Values of keys, as in `rows`, that foreign keys of its rows refer to."""
        self.wholes: Final = wholes
        """Tables and databases that it may change anywhere."""
        self.parts: Final = parts
        """Tables and databases that it changes in those rows, or refers to by those keys, only."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupKeys):
            return NotImplemented
        return (
            self.rows == other.rows
            and self.references == other.references
            and self.wholes == other.wholes
            and self.parts == other.parts
        )

    def __hash__(self) -> int:
        return hash((self.rows, self.references, self.wholes, self.parts))

    def __repr__(self) -> str:
        return f"GroupKeys({self.rows}, {self.references}, {self.wholes}, {self.parts})"


NO_KEYS: Final = GroupKeys()
