"""The kinds of values that settings have, each with a description of what it allows."""

from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from typing import Annotated, Literal, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, SecretStr
from pydantic import StringConstraints as Text
from pydantic.fields import FieldInfo

from mtsd.config.start import Start, parse_start
from mtsd.model.distribution import HEAVIEST

HIDDEN = "********"

# sun_path of Linux holds 108 bytes, the last of them NUL (unix(7)).
_SOCKET_PATH_MAX = 107
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a key may contain, in words, if its type and range do not say it."""

    text: str


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a number."""

    text: str


def _path(value: object) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | Path):
        raise ValueError("not a string")  # noqa: TRY004  pydantic collects ValueErrors only
    if "\0" in str(value):
        raise ValueError("a path must not contain NUL")
    return Path(value) if str(value) else None


def _host(host: str) -> str:
    """Refuse "db1:3306": it would be looked up as a name, and nobody has that one."""
    if ":" in host:
        try:
            IPv6Address(host)
        except ValueError:
            raise ValueError(
                "a colon, and no IPv6 address: the port has a key of its own"
            ) from None
    return host


def _listen_address(address: str) -> str:
    if address and not 1 <= int(address.rpartition(":")[2]) <= _LAST_PORT:
        raise ValueError(f"the port is not between 1 and {_LAST_PORT}")
    return address


def _socket(path: Path | None) -> Path | None:
    if path is not None and len(bytes(path)) > _SOCKET_PATH_MAX:
        raise ValueError(f"longer than the {_SOCKET_PATH_MAX} bytes of a Unix socket's path")
    return path


def _start(value: object) -> Start | None:
    if value is None or isinstance(value, Start):
        return value
    if not isinstance(value, str):
        raise ValueError("not a string")  # noqa: TRY004  pydantic collects ValueErrors only
    return parse_start(value)


def _each_once(values: tuple[int, ...]) -> tuple[int, ...]:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise ValueError(f"{value} occurs twice")
    return values


def _bound_once(sets: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    seen: set[str] = set()
    for name in (name for names in sets for name in names):
        if name in seen:
            raise ValueError(f'database "{name}" occurs twice')
        seen.add(name)
    return sets


def _named_once(pairs: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    names = [name for name, _ in pairs]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f'database "{name}" occurs twice')
    return pairs


def _renamed_once(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    names = [name for name, _ in pairs]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f'database "{name}" is renamed twice')
    return pairs


def _position_schema(name: str) -> str:
    if name.lower() in {"mysql", "sys", "information_schema", "performance_schema"}:
        raise ValueError("belongs to the server")
    return name


def _mask(secret: SecretStr) -> str:
    return HIDDEN if secret.get_secret_value() else ""


def _text_or_empty(value: object) -> str:
    return "" if value is None else str(value)


# TOML lists become tuples, so that settings stay frozen.
_List = Field(strict=False)

_PathText = Annotated[
    Path | None, BeforeValidator(_path), PlainSerializer(_text_or_empty, return_type=str)
]
_A_FILE = Allowed('the path of a file, or ""')
FilePath = Annotated[_PathText, _A_FILE]
SocketPath = Annotated[
    _PathText,
    AfterValidator(_socket),
    Allowed(f'the path of a Unix socket, up to {_SOCKET_PATH_MAX} bytes, or ""'),
]
Secret = Annotated[
    SecretStr,
    PlainSerializer(_mask, return_type=str),
    Allowed("a text"),
]
StartText = Annotated[
    Start | None,
    BeforeValidator(_start),
    PlainSerializer(_text_or_empty, return_type=str),
    Allowed('"earliest", "latest", "FILE:POS" with POS from 4, "gtid:SET", or ""'),
]
Host = Annotated[
    str,
    Text(pattern=r"^[0-9A-Za-z._:%-]{0,255}$"),
    AfterValidator(_host),
    Allowed("a host name or an IP address, up to 255 characters"),
]
User = Annotated[
    str, Text(min_length=1, max_length=128), Allowed("a user name of 1 to 128 characters")
]
Channel = Annotated[
    str,
    Text(pattern=r"^[!#-&(-\[\]-_a-~]{0,48}$"),
    Allowed("up to 48 printable ASCII characters, no spaces, quotes or backslashes"),
]
PositionSchema = Annotated[
    str,
    Text(pattern=r"^[0-9A-Za-z_$]{1,64}$"),
    AfterValidator(_position_schema),
    Allowed("1 to 64 of the characters 0-9 A-Z a-z _ $, and none of the server's own schemas"),
]
ColumnName = Annotated[
    str,
    Text(pattern=r"^[^\x00-\x1f\x7f]{0,64}$"),
    Allowed('the name of a column, up to 64 characters, none of control; or ""'),
]
ListenAddress = Annotated[
    str,
    Text(pattern=r"^(([0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})?$"),
    AfterValidator(_listen_address),
    Allowed('"HOST:PORT", or ""'),
]
Port = Annotated[int, Field(ge=1, le=_LAST_PORT)]

_Name = Annotated[str, Text(min_length=1, max_length=64)]
_TableName = Annotated[str, Text(pattern=r"^[^.]+\..+$")]
Names = Annotated[tuple[_Name, ...], _List, Allowed('a list of database names, ["db1", "db2"]')]
TableNames = Annotated[
    tuple[_TableName, ...], _List, Allowed('a list of table names, ["db.table1", "db.table2"]')
]
TablePatterns = Annotated[
    tuple[_TableName, ...],
    _List,
    Allowed('a list of patterns with the wildcards % and _, ["db.t%", "d%.t_"]'),
]
_Pair = Annotated[tuple[_Name, _Name], _List]
Renames = Annotated[
    tuple[_Pair, ...],
    _List,
    AfterValidator(_renamed_once),
    Allowed('a list of pairs, [["from", "to"], ["from2", "to2"]], no database renamed twice'),
]
_NameSet = Annotated[tuple[_Name, ...], _List, Field(min_length=1)]
NameSets = Annotated[
    tuple[_NameSet, ...],
    _List,
    AfterValidator(_bound_once),
    Allowed('a list of lists of database names, [["db1", "db2"], ["db3"]], no name twice'),
]
_Pin = Annotated[tuple[_Name, Annotated[int, Field(ge=1, le=1024)]], _List]
Pins = Annotated[
    tuple[_Pin, ...],
    _List,
    AfterValidator(_named_once),
    Allowed('a list of pairs of a database and the number of a worker, [["db1", 1], ["db2", 4]]'),
]
_Weight = Annotated[tuple[_Name, Annotated[int, Field(ge=1, le=HEAVIEST)]], _List]
Weights = Annotated[
    tuple[_Weight, ...],
    _List,
    AfterValidator(_named_once),
    Allowed(f'a list of pairs of a database and a weight from 1 to {HEAVIEST}, [["db1", 5]]'),
]
_ErrorNumber = Annotated[int, Field(ge=1, le=65535)]
ErrorNumbers = Annotated[
    tuple[_ErrorNumber, ...],
    _List,
    AfterValidator(_each_once),
    Allowed("a list of error numbers from 1 to 65535, none twice"),
]


def is_secret(field: FieldInfo) -> bool:
    """Whether the key's value must never be displayed."""
    return field.annotation is SecretStr


def is_path(field: FieldInfo) -> bool:
    """Whether the key is the path of a file or a socket."""
    return field.annotation == Path | None


def is_file(field: FieldInfo) -> bool:
    """Whether the key is the path of a file that is read."""
    return _A_FILE in field.metadata


def is_plain_text(field: FieldInfo) -> bool:
    """Whether the key's value is written with quotes in TOML."""
    return field.annotation not in (bool, int, float) and get_origin(field.annotation) is not tuple


def choices(field: FieldInfo) -> tuple[str, ...]:
    """Return the fixed list of values that the key may have, or () if there is none."""
    if get_origin(field.annotation) is not Literal:
        return ()
    return tuple(str(word) for word in get_args(field.annotation))


def limits(field: FieldInfo) -> tuple[float, float] | None:
    """Return the minimum and maximum of the key's value; None if it is not a number."""
    least = [item.ge for item in field.metadata if isinstance(item, Ge)]
    most = [item.le for item in field.metadata if isinstance(item, Le)]
    if not least or not most:
        return None
    low, high = least[0], most[0]
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return None
    return low, high


def allowed(field: FieldInfo) -> str:
    """Describe in words what the key may contain."""
    for item in field.metadata:
        if isinstance(item, Allowed):
            return item.text
    if field.annotation is bool:
        return "true or false"
    if words := choices(field):
        return "one of " + ", ".join(f'"{word}"' for word in words)
    text = "an integer" if field.annotation is int else "a number"
    if bounds := limits(field):
        text += f" from {bounds[0]} to {bounds[1]}"
    unit = next((f" ({item.text})" for item in field.metadata if isinstance(item, Unit)), "")
    return text + unit
