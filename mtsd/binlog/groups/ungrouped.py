"""Why an event is part of no group that could be applied."""

from mtsd.binlog.bytes.event_type import BEFORE_5_6, type_name
from mtsd.binlog.events.dialect import Dialect
from mtsd.binlog.events.load_data import BEFORE_5_0


def why_not_grouped(code: int, dialect: Dialect) -> str:
    """Return what is wrong with an event of this type, and what to do."""
    if code in dialect.fragments:
        return (
            "a row event in fragments, as MariaDB writes it from 12.3 on if it is larger than"
            " binlog_row_event_fragment_threshold, cannot be applied; raise that variable on"
            " the source above its largest row events, apply this transaction by hand, and"
            " continue after it with mtsd position set"
        )
    if code in BEFORE_5_0 and code in dialect.load_data:
        return (
            f"LOAD DATA of a MySQL 4.0 or 4.1 source ({dialect.load_data[code]} event)"
            " cannot be applied; upgrade that source, or load the file on the target by hand"
            " and continue after it with mtsd position set"
        )
    if code in BEFORE_5_6:
        return f"a {type_name(code)}, which only servers before 5.6 write"
    return f"an event of unknown type {code}"
