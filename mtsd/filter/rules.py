"""The rules that say what is replicated, as they are written in the section [filter]."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True)
class Rules:
    """All empty: everything is replicated, under its own name.

    Tables and patterns are "database.table"; `rewrite_db` has pairs of a name on the source and
    one on the target, and all other rules use the latter.
    """

    do_db: tuple[str, ...] = ()
    ignore_db: tuple[str, ...] = ()
    do_table: tuple[str, ...] = ()
    ignore_table: tuple[str, ...] = ()
    wild_do_table: tuple[str, ...] = ()
    wild_ignore_table: tuple[str, ...] = ()
    rewrite_db: tuple[tuple[str, str], ...] = ()

    @property
    def on_tables(self) -> bool:
        """Whether there are any rules for tables."""
        return bool(
            self.do_table or self.ignore_table or self.wild_do_table or self.wild_ignore_table
        )

    def __bool__(self) -> bool:
        """Return whether there are any rules."""
        return bool(self.on_tables or self.do_db or self.ignore_db or self.rewrite_db)

    def __str__(self) -> str:
        """Return the rules for a message, in one line."""
        return ", ".join(f"{name} = {value}" for name, value in self._given().items())

    def text(self) -> str:
        """Return the rules for the position tables; `parse` reads them."""
        return json.dumps(self._given())

    @classmethod
    def parse(cls, text: str) -> "Rules":
        """Return the rules that `text` has written. Raises ValueError on anything else."""
        document = json.loads(text)
        known = {field.name for field in fields(cls)}
        if not isinstance(document, dict) or not known.issuperset(document):
            raise ValueError(f"not filter rules: {text[:200]!r}")
        renamed = tuple((str(name), str(target)) for name, target in document.pop("rewrite_db", ()))
        named = {name: tuple(map(str, values)) for name, values in document.items()}
        return cls(rewrite_db=renamed, **named)

    def _given(self) -> dict[str, list[object]]:
        return {
            name: [list(each) if isinstance(each, tuple) else each for each in values]
            for name, values in asdict(self).items()
            if values
        }


NO_RULES: Final = Rules()
