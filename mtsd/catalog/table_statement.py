"""The effects of CREATE TABLE and ALTER TABLE on a table's columns and unique keys.

Only what a table's definition needs is parsed; the rest of a clause is skipped. An unknown clause
makes the definition unknown rather than wrong: it raises `UnknownClauseError`.
"""

from dataclasses import dataclass, replace
from typing import Final

from mtsd.binlog.sql.words import Words
from mtsd.catalog.clause_parts import (
    UnknownClauseError,
    bare_name,
    column_type,
    named_character_set,
    skip_clause,
    skip_parentheses,
)
from mtsd.catalog.definition import PRIMARY, ColumnDefinition, Key, TableDefinition
from mtsd.model.statement_text import TokenKind

_NO_CHANGE: Final = frozenset({
    b"ALGORITHM", b"AUTOEXTEND_SIZE", b"AUTO_INCREMENT", b"AVG_ROW_LENGTH", b"CHECK",
    b"CHECKSUM", b"COMMENT", b"COMPRESSION", b"CONNECTION", b"DATA", b"DELAY_KEY_WRITE",
    b"DISABLE", b"DISCARD", b"ENABLE", b"ENCRYPTION", b"ENGINE", b"ENGINE_ATTRIBUTE", b"FORCE",
    b"IMPORT", b"INSERT_METHOD", b"KEY_BLOCK_SIZE", b"LOCK", b"MAX_ROWS", b"MIN_ROWS", b"ORDER",
    b"PACK_KEYS", b"PASSWORD", b"ROW_FORMAT", b"SECONDARY_ENGINE", b"SECONDARY_ENGINE_ATTRIBUTE",
    b"STATS_AUTO_RECALC", b"STATS_PERSISTENT", b"STATS_SAMPLE_PAGES", b"STORAGE", b"TABLESPACE",
    b"UNION", b"WITH", b"WITHOUT", b"PARTITION", b"PARTITIONS", b"TRUNCATE", b"COALESCE",
    b"REORGANIZE", b"EXCHANGE", b"ANALYZE", b"OPTIMIZE", b"REBUILD", b"REPAIR", b"REMOVE",
    b"START", b"INDEX", b"SECONDARY_LOAD", b"SECONDARY_UNLOAD",
})  # fmt: skip
_OTHER_KEYS: Final = frozenset(
    {b"INDEX", b"KEY", b"FULLTEXT", b"SPATIAL", b"FOREIGN", b"CHECK", b"PARTITION"}
)


@dataclass(slots=True)
class _Table:
    columns: list[ColumnDefinition]
    keys: list[Key]
    character_set: str
    renamed: tuple[str, str] | None = None

    def place(self, name: str) -> int:
        wanted = name.lower()
        for place, column in enumerate(self.columns):
            if column.name.lower() == wanted:
                return place
        raise UnknownClauseError(f"there is no column `{name}`")


def created(tokens: Words, database: str, table: str, character_set: str) -> TableDefinition:
    """Return the table of a CREATE TABLE, parsed from the parenthesis after its name.

    `character_set` is its database's default, "" if it is not known.
    """
    # The table's own default follows the columns.
    definition = _Table([], [], "")
    if not tokens.at_symbol(b"("):
        raise UnknownClauseError("CREATE TABLE without columns")
    tokens.take()
    while True:
        _addition(tokens, definition, inside=True)
        if tokens.at_symbol(b","):
            tokens.take()
            continue
        if not tokens.at_symbol(b")"):
            raise UnknownClauseError("CREATE TABLE: a column that is not understood")
        tokens.take()
        break
    _options(tokens, definition)
    definition.character_set = definition.character_set or character_set
    columns = [
        replace(column, character_set=column.character_set or definition.character_set)
        if _is_text(column)
        else column
        for column in definition.columns
    ]
    return TableDefinition(
        database, table, tuple(columns), tuple(definition.keys), definition.character_set
    )


def altered(tokens: Words, before: TableDefinition, database: str) -> TableDefinition:
    """Return the table after an ALTER TABLE, parsed from the first clause after its name.

    A new name without a database is in `database`, the session's default.
    """
    table = _Table(list(before.columns), list(before.keys), before.character_set)
    while tokens.next is not None:
        _clause(tokens, table)
        if tokens.at_symbol(b","):
            tokens.take()
        elif tokens.at_symbol(b";"):
            break
    qualifier, name = table.renamed or (before.database, before.table)
    return TableDefinition(
        qualifier or database or before.database,
        name,
        tuple(table.columns),
        tuple(table.keys),
        table.character_set,
    )


def with_unique(tokens: Words, before: TableDefinition, name: str) -> TableDefinition:
    """Return the table with another unique key, on the columns in the parentheses that follow."""
    table = _Table(list(before.columns), list(before.keys), before.character_set)
    _key(tokens, table, name)
    return replace(before, keys=tuple(table.keys))


def without(before: TableDefinition, key: str) -> TableDefinition:
    """Return the table without an index, which need not be one of its unique keys."""
    wanted = key.lower()
    return replace(before, keys=tuple(one for one in before.keys if one.name.lower() != wanted))


def _clause(tokens: Words, table: _Table) -> None:
    first = tokens.word()
    match first:
        case b"ADD":
            if tokens.at_word(b"COLUMN"):
                tokens.take()
                tokens.take_words(b"IF", b"NOT", b"EXISTS")
                _column_or_columns(tokens, table)
            elif tokens.at_symbol(b"("):
                _column_or_columns(tokens, table)
            else:
                _addition(tokens, table, inside=False)
        case b"DROP":
            _drop(tokens, table)
        case b"CHANGE" | b"MODIFY":
            tokens.take_words(b"COLUMN", b"IF", b"EXISTS")
            _, old = tokens.take_name()
            new = tokens.take_name()[1] if first == b"CHANGE" else old
            place = table.place(old)
            new = new if first == b"CHANGE" else table.columns[place].name
            del table.columns[place]
            _rename_in_keys(table, old, new)
            _column(tokens, table, new, place)
        case b"RENAME":
            _rename(tokens, table)
        case b"CONVERT":
            tokens.take_words(b"TO")
            table.character_set = named_character_set(tokens)
            table.columns = [
                replace(column, character_set=table.character_set) if _is_text(column) else column
                for column in table.columns
            ]
            skip_clause(tokens)
        case b"DEFAULT" | b"CHARACTER" | b"CHARSET" | b"COLLATE":
            table.character_set = named_character_set(tokens, first)
            skip_clause(tokens)
        case b"ALTER":
            # Changes a column's default, or the visibility of a column or index.
            skip_clause(tokens)
        case word if word in _NO_CHANGE:
            skip_clause(tokens)
        case word:
            raise UnknownClauseError(f"ALTER TABLE … {word.decode(errors='replace')}")


def _column_or_columns(tokens: Words, table: _Table) -> None:
    if not tokens.at_symbol(b"("):
        _, name = tokens.take_name()
        _column(tokens, table, name, len(table.columns))
        return
    tokens.take()
    while True:
        _addition(tokens, table, inside=True)
        more = tokens.at_symbol(b",")
        tokens.take()
        if not more:
            return


def _addition(tokens: Words, table: _Table, *, inside: bool) -> None:
    """Parse a column or a key; `inside` parentheses, the closing one ends it."""
    constraint = ""
    if tokens.at_word(b"CONSTRAINT"):
        tokens.take()
        if not any(map(tokens.at_word, (b"PRIMARY", b"UNIQUE", b"FOREIGN", b"CHECK"))):
            _, constraint = tokens.take_name()
    if tokens.at_word(b"PRIMARY"):
        tokens.take()
        tokens.take_words(b"KEY")
        _key(tokens, table, PRIMARY)
    elif tokens.at_word(b"UNIQUE"):
        tokens.take()
        tokens.take_words(b"INDEX", b"KEY")
        name = constraint
        if not tokens.at_symbol(b"(") and not tokens.at_word(b"USING"):
            _, name = tokens.take_name()
        _key(tokens, table, name)
    elif tokens.next is not None and (
        tokens.next.kind is TokenKind.WORD and tokens.next.text in _OTHER_KEYS
    ):
        skip_clause(tokens)
    else:
        if not inside:
            tokens.take_words(b"COLUMN")
        _, name = tokens.take_name()
        if tokens.at_word(b"FOR"):
            # PERIOD FOR of a MariaDB, of which PERIOD has been taken: no type begins so.
            skip_clause(tokens)
        else:
            _column(tokens, table, name, len(table.columns))


def _key(tokens: Words, table: _Table, name: str) -> None:
    while tokens.next is not None and not tokens.at_symbol(b"("):
        tokens.take()
    tokens.take()
    columns: list[str] = []
    is_plain = True
    while tokens.next is not None and not tokens.at_symbol(b")"):
        if tokens.at_symbol(b"("):
            # A prefix or an expression: a prefix belongs to a column, an expression does not.
            before = tokens.last.text if tokens.last is not None else b""
            is_plain = is_plain and before not in {b"(", b","}
            skip_parentheses(tokens)
        elif tokens.at_symbol(b",") or tokens.at_word(b"ASC") or tokens.at_word(b"DESC"):
            tokens.take()
        else:
            columns.append(bare_name(tokens))
    tokens.take()
    skip_clause(tokens)
    if not is_plain:
        return
    if not columns:
        raise UnknownClauseError("a key without columns")
    named = tuple(_named(table, column) for column in columns)
    table.keys.append(Key(name or _free_name(table, named[0]), named))


def _named(table: _Table, name: str) -> str:
    """Return a column's name as spelled in the table; the column may be defined later."""
    return next((one.name for one in table.columns if one.name.lower() == name.lower()), name)


def _free_name(table: _Table, column: str) -> str:
    """Return the name a server gives an unnamed key: its first column's, with a number if taken."""
    taken = {key.name.lower() for key in table.keys}
    names = [column, *(f"{column}_{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name.lower() not in taken)


def _column(tokens: Words, table: _Table, name: str, place: int) -> None:
    """Parse a column from its type on, and insert it at `place` unless it says where."""
    kind, character_set = column_type(tokens)
    if not (name and kind):
        raise UnknownClauseError("a column without a type")
    while tokens.next is not None and not tokens.at_symbol(b",);"):
        if tokens.at_symbol(b"("):
            skip_parentheses(tokens)
            continue
        word = tokens.word()
        match word:
            case b"":
                tokens.take()
            case b"UNSIGNED" | b"ZEROFILL":
                kind += " " + word.decode().lower()
            case b"CHARACTER" | b"CHARSET" | b"COLLATE":
                character_set = named_character_set(tokens, word) or character_set
            case b"PRIMARY":
                tokens.take_words(b"KEY")
                table.keys.append(Key(PRIMARY, (name,)))
            case b"UNIQUE":
                tokens.take_words(b"KEY")
                table.keys.append(Key(_free_name(table, name), (name,)))
            case b"KEY":
                table.keys.append(Key(PRIMARY, (name,)))
            case b"COMMENT" | b"DEFAULT":
                tokens.take()
            case b"REFERENCES":
                tokens.take_name()
            case b"FIRST":
                place = 0
            case b"AFTER":
                place = table.place(bare_name(tokens)) + 1
    if kind == "serial":
        table.keys.append(Key(_free_name(table, name), (name,)))
    if character_set == "binary" and kind.startswith(("char", "varchar", "text")):
        kind = kind.replace("varchar", "varbinary").replace("char", "binary")
        kind = kind.replace("text", "blob")
        character_set = ""
    column = ColumnDefinition(name, kind, character_set)
    if not character_set and _is_text(column):
        column = replace(column, character_set=table.character_set)
    table.columns.insert(place, column)


def _is_text(column: ColumnDefinition) -> bool:
    return column.kind in {
        "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set",
    }  # fmt: skip


def _drop(tokens: Words, table: _Table) -> None:
    ahead = tokens.next
    word = tokens.word() if ahead is not None and ahead.text in _DROPPED else b""
    match word:
        case b"PRIMARY":
            tokens.take_words(b"KEY")
            _remove_key(table, PRIMARY)
        case b"INDEX" | b"KEY" | b"CONSTRAINT":
            tokens.take_words(b"IF", b"EXISTS")
            _remove_key(table, bare_name(tokens))
        case b"FOREIGN" | b"CHECK" | b"PARTITION":
            skip_clause(tokens)
        case _:
            tokens.take_words(b"IF", b"EXISTS")
            name = bare_name(tokens)
            del table.columns[table.place(name)]
            table.keys = [
                Key(key.name, left)
                for key in table.keys
                if (left := tuple(one for one in key.columns if one.lower() != name.lower()))
            ]
            tokens.take_words(b"RESTRICT", b"CASCADE")


_DROPPED: Final = frozenset(
    {b"PRIMARY", b"INDEX", b"KEY", b"CONSTRAINT", b"FOREIGN", b"CHECK", b"PARTITION", b"COLUMN"}
)


def _remove_key(table: _Table, name: str) -> None:
    table.keys = [key for key in table.keys if key.name.lower() != name.lower()]


def _rename(tokens: Words, table: _Table) -> None:
    if tokens.at_word(b"COLUMN"):
        tokens.take()
        old = bare_name(tokens)
        tokens.take_words(b"TO")
        new = bare_name(tokens)
        place = table.place(old)
        table.columns[place] = replace(table.columns[place], name=new)
        _rename_in_keys(table, old, new)
    elif tokens.at_word(b"INDEX") or tokens.at_word(b"KEY"):
        tokens.take()
        old = bare_name(tokens)
        tokens.take_words(b"TO")
        new = bare_name(tokens)
        table.keys = [
            replace(key, name=new) if key.name.lower() == old.lower() else key for key in table.keys
        ]
    else:
        tokens.take_words(b"TO", b"AS")
        table.renamed = tokens.take_name()


def _rename_in_keys(table: _Table, old: str, new: str) -> None:
    table.keys = [
        replace(
            key,
            columns=tuple(new if one.lower() == old.lower() else one for one in key.columns),
        )
        for key in table.keys
    ]


def _options(tokens: Words, table: _Table) -> None:
    """Parse the options after the columns of a CREATE TABLE."""
    while tokens.next is not None:
        if tokens.at_symbol(b"("):
            skip_parentheses(tokens)
            continue
        match tokens.word():
            case b"":
                tokens.take()
            case b"CHARACTER" | b"CHARSET" | b"COLLATE" as word:
                table.character_set = named_character_set(tokens, word)
            case b"PARTITION":
                return
            case b"COMMENT" | b"CONNECTION" | b"ENGINE":
                tokens.take()
                tokens.take()
            case b"SELECT" | b"AS" | b"TABLE" | b"VALUES":
                raise UnknownClauseError("CREATE TABLE … SELECT")
