"""The file `metadata` of mydumper's folder.

Before 0.14.1 it is (mydumper's documentation, "Output Files"; seen from 0.10.1):

    Started dump at: 2026-11-27 04:18:32
    SHOW MASTER STATUS:
        Log: binlog.000001
        Pos: 772
        GTID:3-29590-3

and since then sections, of which [master] is [source] in newer ones. Without --source-data the
names there are commented out:

    [source]
    # executed_gtid_set = "7b166a41-65a2-11ed-9de3-0800275ff74d:1-147115"
    # SOURCE_LOG_FILE = "mydumper1-bin.000017"
    # SOURCE_LOG_POS = 241149225

A section [replication] or [replication.CHANNEL] is the place of the dumped server's own source.
"""

import re
from collections.abc import Mapping
from typing import Final

from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.copies.copied import Copied

_SECTION: Final = re.compile(r"\[(?P<name>[^\]\n]{1,400})\]\s*")
_ENTRY: Final = re.compile(r"#?\s*(?P<key>\w{1,64})\s*=\s*(?P<value>.*?)\s*")
_OLD_SECTION: Final = re.compile(r"SHOW (?P<name>MASTER|SLAVE) STATUS:.*")
_OLD_ENTRY: Final = re.compile(r"\s+(?P<key>Log|Pos|GTID|Host):\s*(?P<value>.*?)\s*")
_TABLE: Final = re.compile(r"[`\"]((?:[^`\"]|``|\"\"){1,256})[`\"](?:\.[`\"].*)?")
_FILE_KEYS: Final = ("source_log_file", "file", "log", "relay_source_log_file")
_POS_KEYS: Final = ("source_log_pos", "position", "pos", "exec_source_log_pos")
_GTID_KEYS: Final = ("executed_gtid_set", "gtid_replica_pos", "gtid_source_pos", "gtid")
_NO_PLACE: Final = (
    "mydumper has written no place in the source's binary log: the server writes none, the user"
    " lacks REPLICATION CLIENT, or mydumper is older than the server and does not know its"
    " statement for that"
)


def is_metadata(text: str) -> bool:
    """Return whether a text begins like mydumper's metadata."""
    return re.match(r"(?:# )?Started dump at: |\[config\]", text) is not None


def parse_metadata(text: str) -> tuple[Copied, ...]:
    """Return the places of the dumped server and, if it is a replica, of its sources.

    Raises ValueError with the reason.
    """
    if "Finished dump at: " not in text:
        raise ValueError("mydumper has not finished: its metadata has no 'Finished dump at'")
    sections = _sections(text)
    databases = frozenset(
        table[1].replace("``", "`") for each in sections if (table := _TABLE.fullmatch(each))
    )
    copies = []
    for name, entries in sections.items():
        kind = name.partition(".")[0].lower()
        if kind not in {"source", "replication"}:
            continue
        position = _position(entries)
        text_of_set = next((entries[key] for key in _GTID_KEYS if entries.get(key)), "")
        gtids = GtidSet.parse(text_of_set) if text_of_set else None
        if position is None and gtids is None:
            continue
        of_replica = kind == "replication"
        uuid = entries.get("source_uuid", "").lower() if of_replica else ""
        # A source that is not named is not taken for the one that is meant.
        if not of_replica or uuid:
            copies.append(Copied("mydumper's copy", position, gtids, uuid, of_replica, databases))
    if not copies:
        raise ValueError(_NO_PLACE)
    return tuple(sorted(copies, key=lambda copied: copied.of_replica))


def _sections(text: str) -> Mapping[str, dict[str, str]]:
    by_name: dict[str, dict[str, str]] = {}
    entries: dict[str, str] = {}
    for line in text.splitlines():
        if (old := _OLD_SECTION.fullmatch(line)) is not None:
            entries = by_name.setdefault("source" if old["name"] == "MASTER" else "replication", {})
        elif (section := _SECTION.fullmatch(line)) is not None:
            name = section["name"]
            entries = by_name.setdefault("source" if name == "master" else name, {})
        elif (entry := _OLD_ENTRY.fullmatch(line) or _ENTRY.fullmatch(line)) is not None:
            key = entry["key"].lower().replace("master", "source").replace("slave", "replica")
            # What is set stands after what is only said, and either may be empty.
            value = entry["value"].strip("\"'")
            if value:
                entries[key] = value
    return by_name


def _position(entries: Mapping[str, str]) -> Position | None:
    file = next((entries[key] for key in _FILE_KEYS if key in entries), "")
    offset = next((entries[key] for key in _POS_KEYS if key in entries), "")
    return Position(file, int(offset)) if file and re.fullmatch(r"\d{1,20}", offset) else None
