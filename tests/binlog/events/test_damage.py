"""Whatever bytes come: a decoder answers or raises BinlogError, and nothing else."""

import contextlib
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.decode import decode
from mtsd.binlog.events.payload import payload_events
from mtsd.binlog.events.table_map import TableMap
from mtsd.binlog.sql.statement import classify, disable_on_replica
from mtsd.binlog.values.table_metadata import parse_optional_metadata
from mtsd.model.errors import BinlogError
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent
from tests.binlog.recording import Recording


def read(event: bytes) -> None:
    try:
        found = decode(event)
        if isinstance(found, TableMap):
            parse_optional_metadata(found)
        elif isinstance(found, QueryEvent):
            classify(found.text)
        if event[4] == EventType.TRANSACTION_PAYLOAD_EVENT:
            for inner in payload_events(event):
                decode(inner)
    except BinlogError:
        pass


def test_cut_off_anywhere(recording: Recording) -> None:
    for event in recording.samples():
        for size in range(min(len(event), 600)):
            read(event[:size])


def test_any_byte_changed_to_any_extreme(recording: Recording) -> None:
    for event in recording.samples():
        for at in range(19, min(len(event), 300)):
            for value in (0, 1, 0x7F, 0x80, 0xFB, 0xFD, 0xFE, 0xFF):
                read(event[:at] + bytes((value,)) + event[at + 1 :])


def test_random_damage(recording: Recording) -> None:
    rng = random.Random(5)
    samples = recording.samples()
    for _ in range(10_000):
        event = bytearray(rng.choice(samples)[:2000])
        for _ in range(rng.randrange(1, 6)):
            event[rng.randrange(19, len(event))] = rng.randrange(256)
        if rng.random() < 0.3:
            at = rng.randrange(19, len(event))
            event[at:at] = rng.randbytes(rng.randrange(1, 9))
        read(bytes(event))


@given(st.binary(min_size=19, max_size=200), st.sampled_from(list(EventType)))
@settings(max_examples=200, deadline=None)
def test_random_bytes_of_every_type(body: bytes, kind: EventType) -> None:
    read(body[:4] + bytes((kind,)) + body[5:])


@given(
    st.lists(
        st.sampled_from(
            b"CREATE|ALTER|EVENT|DEFINER|=|@|(|)|'|\"|`|\\|/*|/*!|*/|--| |\n|#|.|,|;|e|DO|ENABLE|"
            b"DISABLE|ON|SLAVE|COMMENT|RENAME|TO|START|TRANSACTION|TABLE|XA|COMMIT|\xff|1|/*!50000".split(
                b"|"
            )
        ),
        max_size=30,
    ),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_any_statement(words: list[bytes], spaced: bool) -> None:
    statement = (b" " if spaced else b"").join(words)
    classify(StatementText(statement))
    for event in (statement, b"CREATE EVENT e " + statement):
        with contextlib.suppress(BinlogError):
            disable_on_replica(StatementText(event))
