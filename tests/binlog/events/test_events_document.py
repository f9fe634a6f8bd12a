"""docs/events.md has what becomes of each of the 256 event types.

`python -m tests.binlog.events.test_events_document` prints the table as it has to be.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from mtsd.binlog.bytes.event_type import IGNORABLE, EventType
from mtsd.binlog.events.dialect import MARIADB, MYSQL
from tests.binlog.event_trials import (
    PACKED,
    PLACES,
    Trial,
    examples,
    tried,
)
from tests.binlog.recording import Recording

DOCUMENT = Path(__file__).parents[3] / "docs" / "events.md"
T = EventType
HAND_MADE: Final = frozenset({
    T.LOAD_EVENT, T.CREATE_FILE_EVENT, T.EXEC_LOAD_EVENT, T.NEW_LOAD_EVENT,
    T.START_EVENT_V3, T.SLAVE_EVENT, T.UNKNOWN_EVENT,
    T.PRE_GA_WRITE_ROWS_EVENT, T.PRE_GA_UPDATE_ROWS_EVENT, T.PRE_GA_DELETE_ROWS_EVENT,
    T.INCIDENT_EVENT, T.IGNORABLE_LOG_EVENT, T.TRANSACTION_CONTEXT_EVENT, T.VIEW_CHANGE_EVENT,
    T.MARIADB_START_ENCRYPTION_EVENT, T.MARIADB_WRITE_ROWS_COMPRESSED_EVENT,
    T.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT, T.MARIADB_DELETE_ROWS_COMPRESSED_EVENT,
    T.MARIADB_PARTIAL_ROW_DATA_EVENT,
})  # fmt: skip
"""What the servers of the tests do not write, or only if they are made to."""
REASONS: Final[Mapping[int, str]] = {
    T.ROWS_QUERY_LOG_EVENT: "it has the text of the statement, for human readers",
    T.IGNORABLE_LOG_EVENT: "it may be ignored by definition",
    T.HEARTBEAT_LOG_EVENT: "it is in no file, and says where the source is",
    T.HEARTBEAT_LOG_EVENT_V2: "it is in no file, and says where the source is",
    T.VIEW_CHANGE_EVENT: "it is for group replication, and changes no data",
    T.TRANSACTION_CONTEXT_EVENT: "it is for group replication, and changes no data",
    T.MARIADB_ANNOTATE_ROWS_EVENT: "it has the text of the statement, for human readers",
    T.MARIADB_BINLOG_CHECKPOINT_EVENT: "it is for the server's own recovery",
}
UNKNOWN: Final = "an event of unknown type"
UNLESS_IGNORABLE: Final = ("a START_", "a SLAVE_", "a PRE_GA_", "binlog.000001 is encrypted")
IF_IGNORABLE: Final = "passed over if IGNORABLE"
LIKEWISE: Final = "likewise"
Row = tuple[str, ...]


def trials(family: str, code: int) -> dict[str, tuple[Trial, ...]]:
    """Return what becomes of each kind of a type's events, by place."""
    return {
        kind: tuple(tried(family, code, raw, place) for place in PLACES[family])
        for kind, raw in examples(code, family).items()
    }


def is_unknown(found: Mapping[str, tuple[Trial, ...]]) -> bool:
    return all(trial.error.startswith(UNKNOWN) for each in found.values() for trial in each)


def rows() -> Iterator[str]:
    """Yield the rows of the table."""
    lines = [line for code in range(256) for line in _lines(code)]
    for cells, same in groupby(lines, key=lambda line: line[1:]):
        codes = [line[0] for line in same]
        text = codes[0] if len(codes) == 1 else f"{codes[0]} to {codes[-1]}"
        yield f"| {' | '.join((text, *cells))} |"


def _lines(code: int) -> Iterator[Row]:
    by_family = {family: trials(family, code) for family in PLACES}
    known = [family for family, found in by_family.items() if not is_unknown(found)]
    name = f"`{T(code).name}`" if code in frozenset(T) else "(no name)"
    evidence = "hand-made" if code in HAND_MADE or not known else "recorded"
    if not known:
        stops = f"stops: {UNKNOWN} *N*; {IF_IGNORABLE}"
        yield str(code), name, "", stops, LIKEWISE, "no", evidence
        return
    first, *others = (by_family[family] for family in known)
    assert all(_without_payload(other) == _without_payload(first) for other in others), code
    for kind, found in first.items():
        between, headed, inside = (_cell(code, trial) for trial in found[:3])
        if headed == inside:
            headed = LIKEWISE if inside == between else inside
        else:
            headed = f"before its BEGIN: {headed}; then: {inside}"
        packed = "" if len(found) == 3 else "yes" if found[3].outcome == "allowed" else "no"
        label = f"{name}: {kind}" if kind else name
        yield str(code), label, ", ".join(known), between, headed, packed, evidence


def _without_payload(found: Mapping[str, tuple[Trial, ...]]) -> dict[str, tuple[Trial, ...]]:
    return {kind: each[:3] for kind, each in found.items()}


def _cell(code: int, trial: Trial) -> str:
    if trial.outcome == "passed over":
        return f"passed over: {REASONS[code]}"
    if trial.error.startswith(UNLESS_IGNORABLE):
        return f"stops: {trial.error}; {IF_IGNORABLE}"
    return f"stops: {trial.error}" if trial.error else trial.outcome


def test_the_table_is_what_the_grouper_does() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    found = [line for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert found == list(rows())


@pytest.mark.parametrize("family", PLACES)
def test_what_needs_permission_to_be_passed_over(family: str) -> None:
    for code in range(256):
        found = trials(family, code)
        for kind, raw in examples(code, family).items():
            flagged = raw[:17] + IGNORABLE.to_bytes(2, "little") + raw[19:]
            for place, plain in zip(PLACES[family], found[kind], strict=True):
                trial = tried(family, code, flagged, place)
                if not plain.error.startswith((UNKNOWN, *UNLESS_IGNORABLE)):
                    assert trial == plain, (code, place)
                elif place == PACKED:
                    assert trial == Trial("allowed"), code
                else:
                    assert trial == Trial("passed over"), (code, place)


def test_every_type_of_a_family_is_known_in_its_logs() -> None:
    named = frozenset(T) - {T.UNKNOWN_EVENT}
    unknown = {
        family: {code for code in named if is_unknown(trials(family, code))} for family in PLACES
    }
    assert unknown["MySQL"] == {code for code in named if code >= 160}
    assert not {code for code in unknown["MariaDB"] if code >= 160}
    assert unknown["MySQL"] | unknown["MariaDB"] <= named
    assert not unknown["MySQL"] & unknown["MariaDB"]


def test_what_the_dialects_say_is_what_happens() -> None:
    """Each table of a dialect, and what the grouper does with its events."""
    for family, dialect in (("MySQL", MYSQL), ("MariaDB", MARIADB)):
        part = "is part of the group"
        notes = dialect.passed_over - dialect.between_groups
        cases: list[tuple[Collection[int], str, str, str]] = [
            (dialect.heads, "begins a group", "stops", "stops"),
            (dialect.rows, "stops", part, part),
            (dialect.satellites, "begins a group", part, part),
            (notes, "passed over", "passed over", "passed over"),
            (dialect.between_groups, "moves the position", "passed over", "passed over"),
            (dialect.previous_gtids, "moves the position", "stops", "stops"),
            (dialect.payloads, "stops", "ends the group", "stops"),
            (dialect.encrypted, "stops", "stops", "stops"),
            (dialect.fragments, "stops", "stops", "stops"),
        ]
        for codes, *outcomes in cases:
            for code in codes:
                (found,) = trials(family, code).values()
                assert [trial.outcome for trial in found[:3]] == outcomes, code
    for code in range(256):
        for found in trials("MySQL", code).values():
            if code in MYSQL.never_inside:
                assert found[PLACES["MySQL"].index(PACKED)].outcome == "stops", code


@pytest.mark.servers
def test_what_is_said_to_be_hand_made_is_not_recorded(recording: Recording) -> None:
    seen = {event[4] for event in [*recording.events, *recording.heartbeats]}
    assert not seen & HAND_MADE
    known = set(range(1, 43)) - HAND_MADE
    assert known - seen == {
        # LOAD DATA of a large file, and of one that fails.
        T.APPEND_BLOCK_EVENT, T.DELETE_FILE_EVENT,
        # MariaDB's.
        T.WRITE_ROWS_EVENT_V1, T.UPDATE_ROWS_EVENT_V1, T.DELETE_ROWS_EVENT_V1,
        T.STOP_EVENT,
        # With gtid_mode = OFF.
        T.ANONYMOUS_GTID_LOG_EVENT,
    }  # fmt: skip


if __name__ == "__main__":
    print("\n".join(rows()))
