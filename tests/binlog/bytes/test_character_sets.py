"""Every character of every set as a server shows it."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from mtsd.binlog.bytes.character_sets import BINARY, character_set, single_byte_table, text_decoder
from mtsd.model.errors import BinlogError, NotSupportedError
from tests.binlog.recording import Recording

SINGLE_BYTE = [
    "armscii8", "ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8",
    "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5",
    "latin7", "macce", "macroman", "swe7", "tis620",
]  # fmt: skip
MULTI_BYTE = ["big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis"]
UNICODE = ["ucs2", "utf16", "utf16le", "utf32", "utf8mb3", "utf8mb4"]


def shown(recording: Recording, name: str, raws: Sequence[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield those that are well-formed, and what a SELECT says."""
    with closing(recording.server.client()) as client, client.cursor() as cursor:
        for at in range(0, len(raws), 4000):
            part = raws[at : at + 4000]
            values = (
                f"HEX(CONVERT(CONVERT(0x{raw.hex()} USING {name}) USING utf16))" for raw in part
            )
            cursor.execute(f"SELECT {', '.join(values)}")
            (row,) = cursor.fetchall()
            for raw, text in zip(part, row, strict=True):
                if text is not None:
                    yield raw, bytes.fromhex(text).decode("utf-16-be")


def default_collations(recording: Recording) -> dict[str, int]:
    rows = recording.server.sql(
        "SELECT CHARACTER_SET_NAME, ID FROM information_schema.COLLATIONS WHERE IS_DEFAULT = 'Yes'"
    )
    return {str(name): int(number) for name, number in rows}


def test_the_character_set_of_every_collation(recording: Recording) -> None:
    rows = recording.server.sql("SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS")
    assert len(rows) > 280
    assert {int(number): character_set(int(number)) for number, _ in rows} == dict(rows)
    names = {str(name) for _, name in rows}
    assert names == {*SINGLE_BYTE, *MULTI_BYTE, *UNICODE, "binary"}


@pytest.mark.parametrize("name", SINGLE_BYTE)
def test_every_byte_of(recording: Recording, name: str) -> None:
    decode = text_decoder(default_collations(recording)[name])
    raws = [bytes((byte,)) for byte in range(256)]
    found = {raw: decode(raw) for raw in raws}
    assert found == {**found, **dict(shown(recording, name, raws))}
    assert "".join(found.values()) == single_byte_table(name)


@pytest.mark.parametrize("name", MULTI_BYTE)
def test_some_pairs_of(recording: Recording, name: str) -> None:
    compare_pairs(recording, name, 5)


@pytest.mark.long
@pytest.mark.parametrize("name", MULTI_BYTE)
def test_every_pair_of(recording: Recording, name: str) -> None:
    compare_pairs(recording, name, 1)


def compare_pairs(recording: Recording, name: str, step: int) -> None:
    decode = text_decoder(default_collations(recording)[name])
    raws = [bytes((a, b)) for a in range(0x80, 0x100) for b in range(0x30, 0x100)]
    if name in {"ujis", "eucjpms"}:
        high = range(0xA1, 0xFF)
        raws += [bytes((0x8F, a, b)) for a in high for b in high]
    if name == "gb18030":
        rng = random.Random(1)
        raws += [
            bytes((rng.choice((0x81, 0x82, 0x83, 0x84, 0x90)), 0x30 + rng.randrange(10),
                   rng.randrange(0x81, 0xFF), 0x30 + rng.randrange(10)))
            for _ in range(2000)
        ]  # fmt: skip
    # Between others: what has no counterpart must not take them along.
    wanted = dict(shown(recording, name, [b"a" + raw + b"z" for raw in raws[::step]]))
    assert len(wanted) > 6000 // step
    differing = {raw.hex(): text for raw, text in wanted.items() if decode(raw) != text}
    assert not differing


@pytest.mark.parametrize("name", UNICODE)
def test_characters_of_unicode_as(recording: Recording, name: str) -> None:
    numbers = default_collations(recording)
    few = "aé€\u07ff\u0800\uffee" + ("" if name in {"ucs2", "utf8mb3"} else "😀\U0010ffff")
    rows = recording.server.sql(
        "SELECT " + ", ".join(f"HEX(CONVERT('{text}' USING {name}))" for text in (few, ""))
    )
    raw, nothing = (bytes.fromhex(text) for text in rows[0])
    assert text_decoder(numbers[name])(raw) == few
    assert text_decoder(numbers[name])(nothing) == ""


@pytest.mark.parametrize(
    ("collation", "raw"),
    [(255, b"\xff"), (33, b"\xed\xa0\x80"), (35, b"\xd8\x00"), (54, b"a"), (60, b"\0\x11\0\0")],
)
def test_what_is_not_of_the_set(collation: int, raw: bytes) -> None:
    with pytest.raises(BinlogError, match="is not u"):
        text_decoder(collation)(raw)


def test_what_is_no_text() -> None:
    with pytest.raises(NotSupportedError, match="character set binary"):
        text_decoder(BINARY)
    with pytest.raises(NotSupportedError, match="collation 4000 is not known"):
        text_decoder(4000)
