"""Columns that are printed line by line, before the widest cell is known."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from mtsd.cli.output import print_line


class Columns:
    """Aligned lines of cells, printed as they come: columns grow, and never shrink.

    `widths` are the minimum widths, by title; the columns in `right` are right-aligned.
    """

    def __init__(self, widths: Mapping[str, int], *, right: AbstractSet[str]) -> None:
        self._titles: tuple[str, ...] | None = tuple(widths)
        self._right = [title in right for title in widths]
        self._widths = list(widths.values())

    def print(self, cells: tuple[str, ...]) -> None:
        """Print a line, preceded by the line of titles the first time."""
        self._widths = [
            max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)
        ]
        titles, self._titles = self._titles, None
        if titles is not None:
            print_line(self._joined(titles))
        print_line(self._joined(cells))

    def _joined(self, cells: tuple[str, ...]) -> str:
        return "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, self._widths, self._right, strict=True)
        ).rstrip()
