from pymysqlreplication.constants import BINLOG

from mtsd.binlog.bytes.event_type import EventType, type_name


def test_numbers_are_those_of_mysql_replication() -> None:
    theirs = {
        value: name
        for name, value in vars(BINLOG).items()
        if name.endswith(("_EVENT", "_EVENT_V1", "_EVENT_V2"))
        # Kinds of Intvar events, not types.
        and name not in {"INTVAR_INVALID_INT_EVENT", "INTVAR_LAST_INSERT_ID_EVENT"}
        and name != "INTVAR_INSERT_ID_EVENT"
    }
    assert set(theirs) <= set(EventType)
    for number, name in theirs.items():
        # Where that library's name is its own, a word of it still agrees.
        ours = EventType(number).name
        words = {"EVENT", "LOG", "V1", "V2"}
        assert (set(name.split("_")) - words) & (set(ours.split("_")) - words), (name, ours)


def test_all_of_mysqls_types_are_there() -> None:
    assert set(range(43)) <= set(EventType)
    assert set(range(160, 173)) <= set(EventType)


def test_names_for_people() -> None:
    assert type_name(2) == "QUERY_EVENT"
    assert type_name(99) == "type 99"
