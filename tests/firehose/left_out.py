"""Tests that are left out, by what they contain, and why."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

REASONS: Final = {
    r"(re)?start_mysqld|kill_mysqld|shutdown_mysqld|restart_server|restart_with|mysqladmin.*shutdown"
    r"|^\s*(shutdown|restart)\s*;|mysqld_safe": "restarts the server",
    r"have_debug(_sync)?\.inc": "needs a debug build",
    r"purge\s+(master|binary)": "removes binary logs",
    r"master-slave\.inc|rpl/init|rpl_init|change\s+(master|replication)|start\s+(slave|replica)": (
        "needs a replica"
    ),
    r"set\s+(@@)?global[\s.]+(gtid_|enforce_gtid|server_|binlog_encryption|binlog_row_image"
    r"|max_binlog_cache|max_binlog_stmt|binlog_error)": (
        "changes what replication stands on"
    ),
    r"not_log_bin\.inc|have_gtid_mode_off|have_ndb|innodb_force_recovery": "needs another server",
    r"remove_files?(_wildcard)?\s+\$MYSQLD_DATADIR": "deletes files of the server",
    r"\bclone\s+(local|instance)|lock\s+instance|big_test\.inc": "takes too long, or holds locks",
}  # fmt: skip
_SOURCE: Final = re.compile(r"^\s*(?:--\s*)?source\s+([^\s;]+)", re.IGNORECASE | re.MULTILINE)


def reason(test: Path, folder: Path) -> str | None:
    """Return why the test is left out; None if it is not."""
    text = _text(test, folder, 3)
    for pattern, why in _PATTERNS:
        if pattern.search(text):
            return why
    return None


_PATTERNS: Final = [
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), why) for pattern, why in REASONS.items()
]


@cache
def _text(path: Path, folder: Path, depth: int) -> str:
    """Return what the file and those that it includes contain, without comments."""
    try:
        lines = path.read_text(encoding="latin-1").splitlines()
    except (FileNotFoundError, IsADirectoryError):
        return ""
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    if not depth:
        return text
    included = (
        _text(folder / name, folder, depth - 1) for name in _SOURCE.findall(text) if "$" not in name
    )
    return "\n".join((text, *included))
