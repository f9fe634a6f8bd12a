"""Databases of the target that `rewrite_db` makes of several of the source.

On the source their rows have nothing to do with each other. So neither its clock nor its group
commits tell in which order they were changed: here that is the order of the stream.
"""


class MergedDatabases:
    """Learns of them from what is read, also over several connections to the source."""

    __slots__ = ("_sources", "_spellings", "names")

    def __init__(self) -> None:
        self.names: set[str] = set()
        """Those of which changes from several databases have been read, in every spelling."""
        self._sources: dict[str, set[str]] = {}
        """By the name as the target compares it: the databases of the source."""
        self._spellings: dict[str, set[str]] = {}

    def learn(self, source: str, target: str, folded: str) -> None:
        """Note a change in a database, by its names on both.

        `folded` is the one on the target as that compares it: names that differ by case may be one.
        """
        sources = self._sources.setdefault(folded, set())
        spellings = self._spellings.setdefault(folded, set())
        sources.add(source)
        spellings.add(target)
        if len(sources) > 1:
            self.names |= spellings

    def hold(self, databases: tuple[str, ...]) -> bool:
        """Return whether one of these databases of the target is made of several."""
        return not self.names.isdisjoint(databases)
