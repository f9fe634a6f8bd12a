"""The files that the loads of statements read with LOAD DATA, written on the source's machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.servers.mysqld import Server


@dataclass(frozen=True, slots=True)
class Files:
    """The files that are loaded, by their paths on the source."""

    small: Path
    large: Path
    """More than a block of the binary log holds, and than the daemon of these tests keeps."""


def write_files(server: Server) -> Files:
    """Write the files into the folder of the source."""
    files = Files(server.folder / "small rows", server.folder / "large rows")
    files.small.write_text("1\tone\n2\t\\N\n3\ta \\t tab, \\\\ and é\n")
    files.large.write_text("".join(f"{id_}\t{id_:0100}\n" for id_ in range(3000)))
    return files
