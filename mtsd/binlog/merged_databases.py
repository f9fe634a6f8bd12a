"""Databases of the target that `rewrite_db` makes of several of the source.

On the source their rows have nothing to do with each other. So neither its clock nor its group
commits tell in which order they were changed: here that is the order of the stream.
"""


class MergedDatabases:
    """Learns of them from what is read, also over several connections to the source."""

    __slots__ = ("_first", "names")

    def __init__(self) -> None:
        self.names: set[str] = set()
        """Those of which changes from several databases have been read."""
        self._first: dict[str, str] = {}
        """By the name on the target: the first database of the source that was changed."""

    def learn(self, source: str, target: str) -> None:
        """Note a change in a database, by its names on both."""
        if self._first.setdefault(target, source) != source:
            self.names.add(target)

    def hold(self, databases: tuple[str, ...]) -> bool:
        """Return whether one of these databases of the target is made of several."""
        return not self.names.isdisjoint(databases)
