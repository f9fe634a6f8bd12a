"""Asks PyPI which of the locked packages have advisories; `scripts/audit` runs it.

PyPI answers with those of the Python Packaging Advisory Database, for each version of a package
(PyPI documentation, "JSON API", Vulnerabilities). With the standard library only: an audit that
needs packages of its own would have to audit them first.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from urllib.request import urlopen

PROJECT: Final = Path(__file__).resolve().parents[1]
INDEX: Final = "https://pypi.org/pypi"
_TIMEOUT_S: Final = 10.0
_AT_ONCE: Final = 8
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)

Package = tuple[str, str]
"""A name and a version."""


def pinned() -> list[Package]:
    """Return the packages of all lock files."""
    locks = PROJECT.glob("requirements*.lock")
    return sorted({found for lock in locks for found in _PINNED.findall(lock.read_text())})


def main(index: str = INDEX) -> int:
    """Print the advisories; return the exit status, 1 if there are any."""
    first, *others = pinned()
    try:
        # If it does not know the first, it is not asked for the others.
        found = _advisories(index, first)
    except (OSError, ValueError) as error:
        print(f"audit: nothing was looked at, because {index} tells no advisories: {error}")
        return 0
    unknown = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = [(package, pool.submit(_advisories, index, package)) for package in others]
    for package, answer in answers:
        try:
            found += answer.result()
        except (OSError, ValueError) as error:
            unknown.append(f"{' '.join(package)}: not looked at: {error}")
    for line in found + unknown:
        print(line)
    print(f"audit: {len(others) + 1 - len(unknown)} locked packages, {len(found)} advisories")
    return 1 if found else 0


def _advisories(index: str, package: Package) -> list[str]:
    """Return a line for each advisory about a package. Raises OSError and ValueError."""
    name, version = package
    with urlopen(f"{index}/{name}/{version}/json", timeout=_TIMEOUT_S) as answer:  # noqa: S310
        return list(_lines(package, json.load(answer)))


def _lines(package: Package, document: object) -> Iterator[str]:
    if not isinstance(document, dict) or not isinstance(document.get("vulnerabilities"), list):
        raise ValueError("an answer of another form")  # noqa: TRY004  # as if it were not JSON
    name, version = package
    for each in document["vulnerabilities"]:
        if not each.get("withdrawn"):
            fixed = ", ".join(each.get("fixed_in") or ["no version yet"])
            yield f"{name} {version}: {each['id']}, fixed in {fixed}: {each.get('link')}"


if __name__ == "__main__":
    sys.exit(main())
