"""The keys of a target whose tables are those of a recorded file, by their first columns.

Every table of the benchmarks' loads has its first column as its primary key; so no server has to
be asked for them.
"""

from collections.abc import Iterable

from mtsd.apply.tables.column_fit import shapes_of_event
from mtsd.apply.tables.key_definitions import (
    DefinedColumn,
    KeyDefinitions,
    TableName,
    UniqueKeys,
    UniquePart,
)
from mtsd.apply.tables.table_columns import TableColumn
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.table_map import parse_table_map
from mtsd.binlog.values.column_format import column_formats


def keys_by_first_columns(events: Iterable[bytes]) -> KeyDefinitions:
    """Return the definitions of all tables in the Table_map events among `events`.

    These are given without their checksums.
    """
    tables: dict[TableName, UniqueKeys] = {}
    maps = {event[19:]: event for event in events if event[4] == EventType.TABLE_MAP_EVENT.value}
    for event in maps.values():
        table = parse_table_map(event)
        names = [found.name or f"c{at}" for at, found in enumerate(column_formats(table))]
        columns = tuple(
            DefinedColumn(TableColumn(name, "", shape, "", ""), nullable=False)
            for name, shape in zip(names, shapes_of_event(table), strict=True)
        )
        unique = ((UniquePart(columns[0].column.name),),)
        tables[table.database, table.table] = UniqueKeys("innodb", columns, unique)
    return KeyDefinitions(frozenset(database for database, _ in tables), tables, ())
