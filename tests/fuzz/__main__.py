"""A fuzzer of everything that reads what a source sends: `scripts/fuzz [--seconds N]`.

libFuzzer (by atheris) changes a recorded binlog, led by what the code does with it. Its first byte
chooses the reader, see `READERS`. Lengths, positions and checksums are made right again where that
lets the damage through to the parsers. An input that ends in anything but a documented error, takes
longer than 20 s or more than 2 GB, is written to `.fuzz/`; named as an argument it is run again.
"""

import argparse
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import atheris

from mtsd.model.statement_text import StatementText

with atheris.instrument_imports(include=["mtsd"]):
    from mtsd.binlog.bytes.event_type import EventType
    from mtsd.binlog.events.query import parse_query
    from mtsd.binlog.sql.qualifiers import qualifiers
    from mtsd.binlog.sql.statement import classify, disable_on_replica
    from mtsd.binlog.sql.tokenizer import SQL_MODE_NO_BACKSLASH_ESCAPES, tokens_of
    from mtsd.model.errors import BinlogError
    from mtsd.model.session import SessionContext
    from tests.binlog.damage import Binlog, list_events, sealed_anew, sizes, use
    from tests.binlog.recording import OPTIONS, play
    from tests.servers.mysqld import Server

FOLDER = Path(".fuzz")
HEADER = 19
CONTEXTS = (
    SessionContext(),
    SessionContext(sql_mode=SQL_MODE_NO_BACKSLASH_ESCAPES),
    SessionContext(character_set_client=28),
    SessionContext(character_set_client=13),
)


def record() -> dict[bool, tuple[Binlog, Binlog]]:
    """Return a file and a dump of a small binlog, with checksums and without."""
    found = {}
    for checksums in (True, False):
        algorithm = "CRC32" if checksums else "NONE"
        with Server({**OPTIONS, "binlog_checksum": algorithm}) as server:
            file, sent, *_ = Binlog.of(server, play(server))
            found[checksums] = file, sent
    return found


def events_in(data: bytes) -> list[bytes]:
    """Cut events by the lengths in their headers, as far as these go."""
    events = []
    at = 0
    while len(data) - at >= HEADER:
        size = min(max(int.from_bytes(data[at + 9 : at + 13], "little"), HEADER), len(data) - at)
        events.append(data[at : at + size])
        at += size
    return events


def read(binlog: Binlog, data: bytes, hold_bytes: int = 1 << 40) -> None:
    """Read it as it comes, and use what is read."""
    items, _ = binlog.read(data, sizes(random.Random(len(data)), 4096), hold_bytes)
    for item in items:
        with suppress(BinlogError):
            use(item)


def read_sealed(binlog: Binlog, data: bytes, hold_bytes: int = 1 << 40) -> None:
    """Read it as events behind a format description, made right outside."""
    first = 0 if binlog.sequence is None else 1
    rng = random.Random(len(data))
    events = sealed_anew(rng, events_in(data), checksums=binlog.checksums, place=True)
    start = binlog.events()[: first + 1]
    offset = len(start[-1])
    moved = []
    for event in events:
        position = int.from_bytes(event[13:17], "little")
        raw = event[:13] + (position + offset * bool(position) & 0xFFFFFFFF).to_bytes(4, "little")
        moved.append(raw + event[17:])
    found = [*start, *sealed_anew(rng, moved, checksums=binlog.checksums, place=False)]
    read(binlog, binlog.framed(found), hold_bytes)
    list_events(binlog, found[first:])


def read_statement(data: bytes) -> None:
    """Read it as a statement."""
    context = CONTEXTS[len(data) % len(CONTEXTS)]
    last = 0
    for token in tokens_of(StatementText(data, context)):
        assert last <= token.start < token.end <= len(data)
        last = token.end
    classify(StatementText(data, context))
    qualifiers(StatementText(data, context))
    with suppress(BinlogError):
        disable_on_replica(StatementText(data, context))


def readers() -> list[Callable[[bytes], None]]:
    """Return the readers that an input's first byte chooses from."""
    recorded = record()
    found: list[Callable[[bytes], None]] = [read_statement]
    for binlog in (*recorded[True], *recorded[False]):
        found += [
            lambda data, binlog=binlog: read(binlog, data),  # type: ignore[misc]
            lambda data, binlog=binlog: read_sealed(binlog, data),  # type: ignore[misc]
            lambda data, binlog=binlog: read_sealed(binlog, data, 200),  # type: ignore[misc]
        ]
    write_corpus(recorded)
    return found


def write_corpus(recorded: dict[bool, tuple[Binlog, Binlog]]) -> None:
    """Write what the fuzzer begins with: whole binlogs, transactions, statements."""
    seeds: list[bytes] = []
    for at, binlog in enumerate((*recorded[True], *recorded[False])):
        first = 1 + 3 * at
        seeds.append(bytes((first,)) + binlog.data)
        group: list[bytes] = []
        for event in [*binlog.events(), b""]:
            if not event or event[4] in {33, 34, 42}:
                seeds += (bytes((first + way,)) + b"".join(group) for way in (1, 2))
                group = []
            group.append(event)
            if event and event[4] == EventType.QUERY_EVENT and not binlog.checksums:
                seeds.append(b"\0" + parse_query(event).statement)
    corpus = FOLDER / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"recorded-{number:04}").write_bytes(seed)


def main() -> None:
    """Fuzz for as long as asked, or run the inputs named again."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="Fuzz the binlog's readers.")
    parser.add_argument("--seconds", type=int, default=600, metavar="N", help="default: 600")
    parser.add_argument("inputs", nargs="*", help="files to be run again")
    args = parser.parse_args()
    ways = readers()

    def one(data: bytes) -> None:
        if data:
            ways[data[0] % len(ways)](data[1:])

    options = [
        f"-max_total_time={args.seconds}", "-max_len=65536", "-timeout=20", "-rss_limit_mb=2048",
        f"-artifact_prefix={FOLDER}/",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, *(args.inputs or [str(FOLDER / "corpus")])], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
