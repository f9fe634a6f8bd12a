"""Which branch each row of a split transaction goes to (method P3 of WL#4648).

Rows that have a key in common go to one branch, in their order: no other one then waits for their
locks, and none sees what another has not committed. Keys are numbers as in
`mtsd.model.group_keys`: what one row changes, another may change or refer to.

A transaction that is in memory is gone through first (`JoinedRows`): rows that are connected,
directly or through others, then have one root. One that is read piece by piece is split as it
arrives; if a row turns out to connect two branches, it cannot be.

What is remembered of keys is bounded. Past that, rows may get apart that have a key in common. The
target then refuses one of them or lets it wait for the other's branch, as with two clients, so that
the transaction fails as a whole; it is not applied in another order. That takes a missing row to be
an error, as who does not find one locks nothing: where it is none, a transaction with more keys
than are remembered is not split.
"""

from collections.abc import Sequence
from typing import Final

from mtsd.model.errors import MtsdError

MAX_KEYS: Final = 1 << 18
"""About 40 MB."""


class NotSplitError(MtsdError):
    """A transaction cannot be split, for this reason."""


class JoinedRows:
    """The sets of keys that rows of a transaction connect, with up to `most` keys."""

    def __init__(self, most: int = MAX_KEYS) -> None:
        self._most = most
        self._parents: dict[int, int] = {}
        self._referring: list[tuple[int, int]] = []

    @property
    def is_full(self) -> bool:
        """Whether there may be more than what is remembered."""
        return len(self._parents) + len(self._referring) >= self._most

    def add(self, rows: Sequence[int], references: Sequence[int] = ()) -> None:
        """Connect the keys of one row."""
        if self.is_full:
            return
        first = rows[0]
        root = self.root(first)
        self._parents.setdefault(first, first)
        for key in rows[1:]:
            other = self.root(key)
            self._parents.setdefault(key, key)
            if other != root:
                self._parents[other] = root
        for key in references:
            self._referring.append((first, key))

    def connect_references(self) -> None:
        """Connect rows with those that they refer to, once all were added.

        Rows that only refer to the same one, which nobody changes, are not connected by that.
        """
        for first, key in self._referring:
            if key in self._parents:
                root, other = self.root(first), self.root(key)
                if root != other:
                    self._parents[other] = root
        self._referring.clear()

    def root(self, key: int) -> int:
        """Return the key that stands for all that are connected with this one."""
        parents = self._parents
        root = key
        while (parent := parents.get(root, root)) != root:
            root = parent
        while key != root:
            parents[key], key = root, parents[key]
        return root


class RowBranches:
    """Chooses among `count` branches; `joined` is what is known of the whole transaction.

    Unless it `forgets`, NotSplitError is raised where keys are too many to be remembered.
    """

    def __init__(
        self,
        count: int,
        joined: JoinedRows | None = None,
        *,
        max_keys: int = MAX_KEYS,
        forgets: bool = True,
    ) -> None:
        if joined is not None and joined.is_full and not forgets:
            raise NotSplitError(_TOO_MANY)
        self._joined = joined
        self._forgets = forgets
        self._max_keys = max_keys
        self._changed: dict[int, int] = {}
        """The branch of each key of rows."""
        self._referred: dict[int, int] = {}
        """The branch of the rows that refer to a key, `_SEVERAL` if there is more than one."""
        self.sizes = [0] * count
        """Bytes of each branch so far."""

    def place(self, rows: Sequence[int], references: Sequence[int] = (), *, size: int = 0) -> int:
        """Return the branch of a row that has these keys. Raises NotSplitError."""
        if self._joined is not None:
            # What it refers to is connected with it, unless nobody changes that.
            rows = tuple({self._joined.root(key) for key in rows})
            references = ()
        changed, referred = self._changed, self._referred
        branches = {changed[key] for key in rows if key in changed}
        branches.update(changed[key] for key in references if key in changed)
        branches.update(referred[key] for key in rows if key in referred)
        if len(branches) > 1 or _SEVERAL in branches:
            raise NotSplitError("its rows are connected by their keys")
        branch = branches.pop() if branches else self.sizes.index(min(self.sizes))
        if len(changed) + len(referred) < self._max_keys:
            for key in rows:
                changed[key] = branch
            for key in references:
                referred[key] = branch if referred.get(key, branch) == branch else _SEVERAL
        elif not self._forgets:
            raise NotSplitError(_TOO_MANY)
        self.sizes[branch] += size
        return branch

    def place_by_key(self, rows: Sequence[int], *, size: int = 0) -> int:
        """Return the branch of a row of a table whose rows have a single key, and no references.

        An update may give it another value. Nothing has to be remembered of it. Raises
        NotSplitError.
        """
        count = len(self.sizes)
        joined = self._joined
        branch = -1
        for key in rows:
            by_key = (key if joined is None else joined.root(key)) % count
            if branch not in {-1, by_key}:
                raise NotSplitError("an update of a key connects its rows")
            branch = by_key
        self.sizes[branch] += size
        return branch


_SEVERAL: Final = -1
_TOO_MANY: Final = (
    "it has more keys than are remembered, and rows that are missing would be passed over, which"
    ' they are not with exec_mode = "strict"'
)
