"""Where the files around the daemon are."""

from pathlib import Path

PROJECT = Path(__file__).parents[2]
