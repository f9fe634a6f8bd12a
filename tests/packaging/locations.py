"""Where the files around the daemon are."""

from pathlib import Path

PROJECT = Path(__file__).parents[2]


def package_files() -> set[str]:
    """Return the files of the package, as a wheel names them."""
    return {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "mtsd").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
