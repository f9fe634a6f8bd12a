"""Text in the character sets of MySQL's columns: from a collation's id to a decoder.

Decoded is what a server's SELECT says over a utf8mb4 connection: MySQL's sets differ here and there
from those that Python has under the same names, and what has no character is "?" (MySQL manual,
"Supported Character Sets and Collations"; the tests compare every character with a server's).
"""
# ruff: noqa: RUF001  # characters that look like others are what this is about

import codecs
from collections.abc import Callable
from functools import cache
from typing import Final

from pymysql.charset import charset_by_id, charset_by_name

from mtsd.model.errors import BinlogError, NotSupportedError

BINARY: Final = 63
"""The collation of bytes that are no text."""

Decode = Callable[[bytes], str]


def character_set(collation: int) -> str:
    """Name the character set of a collation; NotSupportedError where its id is not known."""
    if WITHOUT_PAD <= collation < 2 * WITHOUT_PAD:
        collation -= WITHOUT_PAD
    for first, last, name in _LATER_COLLATIONS:
        if first <= collation <= last:
            return name
    try:
        # PyMySQL has no annotations.
        name = str(charset_by_id(collation).name)
    except KeyError:
        raise NotSupportedError(
            f"collation {collation} is not known: its column's text cannot be decoded"
        ) from None
    return FORMER_NAMES.get(name, name)


def any_collation(name: str) -> int:
    """Return the id of a collation of a character set; NotSupportedError where it is not known."""
    for first, _, collation in _LATER_COLLATIONS:
        if collation == name:
            return first
    try:
        return int(charset_by_name("utf8" if name == "utf8mb3" else name).id)
    except KeyError:
        raise NotSupportedError(f"character set {name[:80]!r} is not known") from None


@cache
def text_decoder(collation: int) -> Decode:
    """Return what decodes a column's text, each call one value.

    It raises BinlogError for bytes that are not of the character set. NotSupportedError where the
    collation is not known or is that of bytes.
    """
    name = character_set(collation)
    table = single_byte_table(name)
    if table:
        return _of_table(table)
    if name in _UNICODE:
        return _strict(name, _UNICODE[name])
    if name == "big5":
        return _decode_big5
    if name in _MULTI_BYTE:
        return _multi_byte(*_MULTI_BYTE[name])
    raise NotSupportedError(f"collation {collation} is of character set {name}: it is no text")


@cache
def single_byte_table(name: str) -> str:
    """Return the 256 characters of a set whose characters are bytes; "" for other sets."""
    if name in _TABLES:
        return _TABLES[name]
    if name not in _SINGLE_BYTE:
        return ""
    codec, exceptions = _SINGLE_BYTE[name]
    characters = [bytes((byte,)).decode(codec, "replace") for byte in range(256)]
    table = "".join(characters).replace("\ufffd", "?")
    return "".join(exceptions.get(byte, character) for byte, character in enumerate(table))


def _of_table(table: str) -> Decode:
    def decode(raw: bytes) -> str:
        return codecs.charmap_decode(raw, "strict", table)[0]

    return decode


def _strict(name: str, codec: str) -> Decode:
    def decode(raw: bytes) -> str:
        try:
            return raw.decode(codec)
        except UnicodeDecodeError as error:
            raise BinlogError(f"{raw[:80]!r} is not {name}: {error.reason}") from error

    return decode


def _multi_byte(codec: str, repair: str, differing: dict[int, str]) -> Decode:
    # Each of the differing characters stands for one sequence only.
    def decode(raw: bytes) -> str:
        text = raw.decode(codec, repair)
        return text.translate(differing) if differing else text

    return decode


def _width(raw: bytes, at: int, lowest: int, longest: int = 2) -> int:
    """Return the bytes of the character at `at`, which has no counterpart in Unicode.

    `lowest` is the least byte that can be its second one.
    """
    width = 1
    while width < min(longest, len(raw) - at) and raw[at + width] >= lowest:
        width += 1
    return width


def _question_mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "?", error.start + _width(error.object, error.start, 0x40)


def _gb18030(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    at = error.start
    if b"0" <= error.object[at + 1 : at + 2] <= b"9":
        return "?", min(at + 4, len(error.object))
    return _question_mark(error)


def _big5(error: UnicodeError) -> tuple[str, int]:
    """Decode the characters that Eten has added to Big5."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    if b"\xf9\xd6" <= pair <= b"\xf9\xdc":
        return pair.decode("cp950"), error.start + 2
    return _question_mark(error)


def _decode_big5(raw: bytes) -> str:
    text = raw.decode("big5", "mtsd_big5")
    if not _ONCE_IN_BIG5.intersection(text):
        return text
    # Python knows two sequences for some of these characters, and MySQL one.
    at = 0
    characters = []
    while at < len(raw):
        width = 1 if raw[at] < 0x80 else 2
        one = raw[at : at + width]
        characters.append("\ufffd" if one in _NOT_IN_BIG5 else one.decode("big5", "mtsd_big5"))
        at += width
    return "".join(characters)


_ONCE_IN_BIG5: Final = frozenset("╴￣ˍ／＼十卅")
_NOT_IN_BIG5: Final = frozenset(
    map(bytes.fromhex, ("a15a", "a1c3", "a1c5", "a1fe", "a240", "a2cc", "a2ce"))
)


def _user_defined(raw: bytes, at: int) -> tuple[str, int] | None:
    """Decode a character of the private rows of a Japanese EUC: 94 of them in each row."""
    wide = raw[at] == 0x8F
    pair = raw[at + wide : at + wide + 2]
    if len(pair) == 2 and pair[0] >= 0xF5 and pair[1] >= 0xA1:
        number = (pair[0] - 0xF5) * 94 + pair[1] - 0xA1
        return chr((0xE3AC if wide else 0xE000) + number), at + wide + 2
    return None


def _ujis(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    raw, at = error.object, error.start
    character = _user_defined(raw, at)
    if character:
        return character
    if raw[at] == 0x8E:
        return "?", at + 1
    return "?", at + _width(raw, at, 0xA1, 3 if raw[at] == 0x8F else 2)


def _eucjpms(error: UnicodeError) -> tuple[str, int]:
    """Decode the rows of NEC and of IBM as well, which are in cp932 too."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    raw, at = error.object, error.start
    if raw[at] == 0xAD and len(raw) > at + 1 and raw[at + 1] >= 0xA1:
        second = raw[at + 1] - 0x61
        shifted = bytes((0x87, second + (second >= 0x7F)))
        return shifted.decode("cp932", "replace")[0].replace("\ufffd", "?"), at + 2
    if raw[at : at + 2] in {b"\x8f\xf3", b"\x8f\xf4"} and len(raw) > at + 2:
        place = (raw[at + 1] - 0xF3) * 94 + raw[at + 2] - 0xF3
        if 0 <= place < len(_IBM):
            return _IBM[place], at + 3
    return _ujis(error)


_IBM: Final = (
    "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤\ufa0e咊坙\ufa0f\ufa10增寬"
    "峵嵓\ufa11德悅愠敎昻晥\ufa12\uf929栁\ufa13\ufa14橫櫢淸淲瀨\ufa15\ufa16甁皂皞\ufa17礰\ufa18\ufa19\ufa1a\ufa1b竧"
    "\ufa1c\ufa1d綠緖\ufa1e荢\ufa1f薰\ufa20\ufa21蠇\ufa22譿賴赶\ufa23\ufa24\ufa25郞\ufa26鄕\ufa27\ufa28閒\uf9dc\ufa29霻靍靑"
    "\ufa2a\ufa2b\ufa2c馞髙魲\ufa2d黑"
)
"""From 8F F3 F3 on."""

for _name, _handler in {
    "mtsd_question_mark": _question_mark,
    "mtsd_big5": _big5,
    "mtsd_gb18030": _gb18030,
    "mtsd_ujis": _ujis,
    "mtsd_eucjpms": _eucjpms,
}.items():
    codecs.register_error(_name, _handler)

_UNICODE: Final = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
_MULTI_BYTE: Final[dict[str, tuple[str, str, dict[int, str]]]] = {
    "cp932": ("cp932", "mtsd_question_mark", {}),
    "eucjpms": (
        "euc_jp",
        "mtsd_eucjpms",
        dict(zip(map(ord, "〜‖−¢£¬~¦"), "～∥－￠￡￢～￤", strict=True)),
    ),
    "euckr": ("cp949", "mtsd_question_mark", {}),
    "gb18030": ("gb18030", "mtsd_gb18030", {0xE7C7: "ḿ"}),
    "gb2312": ("gb2312", "mtsd_question_mark", {}),
    "gbk": ("gbk", "mtsd_question_mark", {}),
    "sjis": ("shift_jis", "mtsd_question_mark", {ord("＼"): "\\"}),
    "ujis": ("euc_jp", "mtsd_ujis", {ord("＼"): "\\"}),
}
"""With the codec of Python: what decodes where it fails, and the characters that differ."""

_SINGLE_BYTE: Final[dict[str, tuple[str, dict[int, str]]]] = {
    "ascii": ("ascii", {}),
    "cp1250": ("cp1250", {}),
    "cp1251": ("cp1251", {}),
    "cp1256": (
        "cp1256",
        dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), "?"),
    ),
    "cp1257": ("cp1257", {}),
    "cp850": ("cp850", {}),
    "cp852": ("cp852", {}),
    "cp866": ("cp866", {0xFC: "ⁿ", 0xFD: "²"}),
    "greek": (
        "iso8859_7",
        {0xA1: "\u02bd", 0xA2: "\u02bc", **dict.fromkeys((0xA4, 0xA5, 0xAA), "?")},
    ),
    "hebrew": ("iso8859_8", {0xAF: "‾"}),
    "hp8": ("hp_roman8", {}),
    "koi8r": ("koi8_r", {}),
    "koi8u": ("koi8_u", {0x95: "•"}),
    "latin1": ("cp1252", {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}),
    "latin2": ("iso8859_2", {}),
    "latin5": ("iso8859_9", {}),
    "latin7": ("iso8859_13", {}),
    "macce": ("mac_latin2", {}),
    "macroman": ("mac_roman", {}),
    "tis620": (
        "tis_620",
        dict.fromkeys((0xA0, *range(0xDB, 0xDF), *range(0xFC, 0x100)), "\ufffd"),
    ),
}
"""With the codec of Python and the characters that differ."""

_ASCII: Final = "".join(map(chr, range(128)))
_CONTROLS: Final = "".join(map(chr, range(0x80, 0xA0)))
_TABLES: Final = {
    "armscii8": _ASCII + _CONTROLS + "\xa0❁§։)(»«—.՝,-՟…՜՛՞"
    + "".join(chr(0x531 + n) + chr(0x561 + n) for n in range(38)) + "’'",
    "dec8": _ASCII + _CONTROLS
    + "\xa0¡¢£?¥?§¤©ª«????°±²³?µ¶·?¹º»¼½?¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ?ÑÒÓÔÕÖŒØÙÚÛÜŸ?ß"
    "àáâãäåæçèéêëìíîï?ñòóôõöœøùúûüÿ??",
    "geostd8": _ASCII + "€?‚?„…†‡?‰?‹?????‘’“”•–—???›????"
    + "".join(map(chr, range(0xA0, 0xC0)))
    + "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ???????????????????????№??",
    "keybcs2": _ASCII + "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼¡«»"
    "░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\xa0",
    "swe7": _ASCII[:64] + "ÉABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÅÜ_éabcdefghijklmnopqrstuvwxyzäöåü?"
    + "?" * 128,
}  # fmt: skip
"""Sets that Python does not have."""

FORMER_NAMES: Final = {"utf8": "utf8mb3"}
_LATER_COLLATIONS: Final = (
    (35, 35, "ucs2"),
    (54, 55, "utf16"),
    (56, 56, "utf16le"),
    (60, 61, "utf32"),
    (62, 62, "utf16le"),
    (90, 90, "ucs2"),
    (101, 124, "utf16"),
    (128, 159, "ucs2"),
    (160, 183, "utf32"),
    (248, 250, "gb18030"),
    (255, 323, "utf8mb4"),
    (576, 607, "utf8mb3"),
    (608, 639, "utf8mb4"),
    (640, 671, "ucs2"),
    (672, 703, "utf16"),
    (736, 767, "utf32"),
    (2048, 2303, "utf8mb3"),
    (2304, 2559, "utf8mb4"),
    (2560, 2815, "ucs2"),
    (2816, 3071, "utf16"),
    (3072, 3327, "utf32"),
)
"""First and last id: those that PyMySQL leaves out. From 576 on they are MariaDB's."""
WITHOUT_PAD: Final = 1024
"""MariaDB's variant of a collation that does not ignore spaces at the end has this id more."""
SWE7: Final = frozenset({10, 82, 10 + WITHOUT_PAD, 82 + WITHOUT_PAD})
"""The collations of the one set of a client in which bytes of ASCII are other characters."""


def is_ascii(raw: bytes, collation: int | None) -> bool:
    """Return whether these bytes of a client are ASCII, and mean the same there."""
    return raw.isascii() and collation not in SWE7
