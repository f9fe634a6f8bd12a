"""What a statement of one family of servers needs on a server of the other.

MySQL and MariaDB share the numbers of session variables from their common past, and differ in what
came after that: SQL modes from bit 32 on, and collations from id 248 on. What has no counterpart is
refused: the statement would mean something else (MySQL and MariaDB manuals, "Server SQL Modes",
"SQL_MODE", and information_schema.COLLATIONS of both).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from mtsd.binlog.bytes.character_sets import character_set
from mtsd.model.errors import NotSupportedError
from mtsd.model.server import Flavour, ServerVersion
from mtsd.model.step import QueryEvent, Statement, UserVar, UserVarType

_SHARED_MODES: Final = (1 << 32) - 1
_MYSQL_TRUNCATES: Final = 1 << 32
"""TIME_TRUNCATE_FRACTIONAL: otherwise MySQL rounds, which MariaDB does only on request."""
_MARIADB_ROUNDS: Final = 1 << 34
_ORACLE: Final = 0x200
_MSSQL: Final = 0x400
_MARIADB_ONLY: Final = {
    _ORACLE: "ORACLE",
    _MSSQL: "MSSQL",
    1 << 32: "EMPTY_STRING_IS_NULL",
    1 << 33: "SIMULTANEOUS_ASSIGNMENT",
}
_FIRST_OF_MYSQL: Final = 248
_KNOWS_MYSQLS: Final = (11, 4, 5)
"""MariaDB from here on has MySQL's collations of utf8mb4 under their names and ids."""
_AS_IN_MARIADB: Final = {255: 2308, 278: 2311, 305: 2310, 309: 1070}
"""utf8mb4_0900_ai_ci, _as_cs, _as_ci and _bin: utf8mb4_uca1400_nopad_… and utf8mb4_nopad_bin."""
_GENERAL: Final = 45
"""utf8mb4_general_ci, in both families."""
_UCA_OF_MYSQL: Final = 255
"""utf8mb4_0900_ai_ci."""
_OF_CLIENTS: Final = {"utf8mb3": 33, "utf8mb4": _GENERAL}
"""Collations that both families have, of the character sets of clients."""
_WITHOUT_PAD: Final = 1024
"""MariaDB's variant of a collation that does not ignore spaces at the end has this id more."""
_UCA_1400: Final = 2048
_OF_A_SET: Final = 256
"""Ids for each character set; the lowest two bits are the levels, the third one is NO PAD."""
_ROOTS_IN_MYSQL: Final = {
    "utf8mb3": {0: 192, 3: 83},
    "utf8mb4": {0: 255, 2: 305, 3: 278},
    "ucs2": {0: 128, 3: 90},
    "utf16": {0: 101, 3: 55},
    "utf32": {0: 160, 3: 61},
}
"""What comes closest to MariaDB's uca1400 collations without a language, by their levels.

Accents and case count in the third; where MySQL has no such collation, it is that of the bytes.
"""


def statement_of(statement: Statement, source: Flavour, target: ServerVersion) -> Statement:
    """Return a statement as `as_of` does, with its user variables."""
    if source is target.flavour:
        return statement
    translated = _collations(target)
    return statement._replace(
        query=as_of(statement.query, source, target),
        satellites=tuple(
            # On MySQL, a variable with a geometry is bytes.
            replace(each, collation=translated(each.collation), geometry="")
            if isinstance(each, UserVar) and each.type is UserVarType.STRING
            else each
            for each in statement.satellites
        ),
    )


def as_of(query: QueryEvent, source: Flavour, target: ServerVersion) -> QueryEvent:
    """Return a statement of a `source` with the session state that means the same on a target.

    Raises NotSupportedError if the target has nothing of the same meaning.
    """
    if source is target.flavour:
        return query
    context = query.context
    to_mysql = target.flavour is Flavour.MYSQL
    if context.sql_if_exists:
        raise NotSupportedError(
            "a statement under MariaDB's sql_if_exists, which MySQL does not have"
        )
    translated = _collations(target)
    modes = _modes_of_mariadb if to_mysql else _modes_of_mysql
    utf8mb4 = _or_none(translated, context.default_collation_for_utf8mb4)
    return query.in_session(
        replace(
            context,
            sql_mode=None if context.sql_mode is None else modes(context.sql_mode),
            character_set_client=_or_none(_any_of_its_set, context.character_set_client),
            collation_connection=_or_none(translated, context.collation_connection),
            collation_server=_or_none(translated, context.collation_server),
            collation_database=_or_none(translated, context.collation_database),
            default_collation_for_utf8mb4=(
                _default_in_mysql(context.character_set_collations) if to_mysql else None
            ),
            character_set_collations=None if utf8mb4 is None else ((_GENERAL, utf8mb4),),
        ),
    )


def _collations(target: ServerVersion) -> Callable[[int], int]:
    return _to_mysql if target.flavour is Flavour.MYSQL else _to_mariadb(target)


def _modes_of_mysql(modes: int) -> int:
    rounds = 0 if modes & _MYSQL_TRUNCATES else _MARIADB_ROUNDS
    return modes & _SHARED_MODES | rounds


def _modes_of_mariadb(modes: int) -> int:
    for bit, name in _MARIADB_ONLY.items():
        if modes & bit:
            raise NotSupportedError(
                f"a statement under MariaDB's SQL mode {name}, which MySQL does not have"
            )
    truncates = 0 if modes & _MARIADB_ROUNDS else _MYSQL_TRUNCATES
    return modes & _SHARED_MODES | truncates


def _default_in_mysql(pairs: tuple[tuple[int, int], ...] | None) -> int:
    """Return the collation that CHARACTER SET utf8mb4 means: of two that MySQL takes, the closer.

    A MariaDB that says none means the one that it has always had.
    """
    for of_set, default in pairs or ():
        if character_set(of_set) == "utf8mb4":
            return _GENERAL if default == _GENERAL else _UCA_OF_MYSQL
    return _GENERAL


def _or_none(translated: Callable[[int], int], collation: int | None) -> int | None:
    return None if collation is None else translated(collation)


def _any_of_its_set(collation: int) -> int:
    if collation < _FIRST_OF_MYSQL:
        return collation
    name = character_set(collation)
    if name in _OF_CLIENTS:
        return _OF_CLIENTS[name]
    if _WITHOUT_PAD <= collation < _WITHOUT_PAD + _FIRST_OF_MYSQL:
        return collation - _WITHOUT_PAD
    raise NotSupportedError(
        f"a statement in the character set {name}, which the target does not have"
    )


def _to_mariadb(target: ServerVersion) -> Callable[[int], int]:
    def translated(collation: int) -> int:
        if collation < _FIRST_OF_MYSQL or target.number >= _KNOWS_MYSQLS:
            return collation
        known = _AS_IN_MARIADB.get(collation)
        if known is None:
            raise _no_collation(collation, "MySQL", "this MariaDB")
        return known

    return translated


def _to_mysql(collation: int) -> int:
    if collation < _FIRST_OF_MYSQL:
        return collation
    if _WITHOUT_PAD <= collation < _WITHOUT_PAD + _FIRST_OF_MYSQL:
        # Only the collation of the bytes has one without padding in MySQL, too.
        return 309 if collation == _AS_IN_MARIADB[309] else collation - _WITHOUT_PAD
    if collation >= _UCA_1400:
        levels = collation % _OF_A_SET & 3
        language = collation % _OF_A_SET >> 3
        roots = _ROOTS_IN_MYSQL.get(character_set(collation), {})
        if not language and levels in roots:
            return roots[levels]
    raise _no_collation(collation, "MariaDB", "MySQL")


def _no_collation(collation: int, source: str, target: str) -> NotSupportedError:
    return NotSupportedError(
        f"a statement of a session with collation {collation} of {source}, which {target} does not"
        " have (its name is in information_schema.COLLATIONS of the source)"
    )
