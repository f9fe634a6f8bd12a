"""The explicit_defaults_for_timestamp of statements whose session has said it before."""

import pytest

from mtsd.binlog.groups.timestamp_defaults import TimestampDefaults, under
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent

PLAIN = QueryEvent(1, 0, 0, StatementText(b"INSERT"), None, "d", ("d",), False, None, None, 0)


def value(defaults: TimestampDefaults, thread: int) -> bool | None:
    query = defaults.completed(PLAIN._replace(thread_id=thread))
    return query.context.explicit_defaults_for_timestamp


def says(defaults: TimestampDefaults, thread: int, said: bool) -> bool:
    query = under(PLAIN._replace(thread_id=thread), said)
    learned = defaults.learn(query)
    assert defaults.completed(query) == query
    return learned


@pytest.mark.parametrize("usual", [False, True])
def test_a_session_has_what_it_said_last(usual: bool) -> None:
    defaults = TimestampDefaults(usual)
    assert value(defaults, 1) is usual
    assert not says(defaults, 1, usual)
    assert says(defaults, 1, not usual)
    assert not says(defaults, 1, not usual)
    assert value(defaults, 1) is not usual
    assert value(defaults, 2) is usual
    assert says(defaults, 1, usual)
    assert value(defaults, 1) is usual


def test_another_run_of_the_source_has_other_sessions() -> None:
    defaults = TimestampDefaults(True)
    says(defaults, 1, said=False)
    defaults.forget_sessions()
    assert value(defaults, 1) is True


def test_nothing_is_filled_in_where_nothing_is_known() -> None:
    defaults = TimestampDefaults(None)
    assert not says(defaults, 1, said=False)
    assert value(defaults, 1) is None
