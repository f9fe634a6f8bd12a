"""What a session keeps of the source's statements is forgotten when its own state changes."""

from mtsd.apply.session.statement_states import StatementStates
from mtsd.model.session import SessionContext
from mtsd.model.statement_text import StatementText
from mtsd.model.step import QueryEvent, Statement, StatementKind
from tests.apply.sessions import TRAITS

VARIABLE = b"explicit_defaults_for_timestamp"


def update(context: SessionContext) -> Statement:
    text = StatementText(b"UPDATE t SET a = NULL", context)
    query = QueryEvent(1, 0, 0, text, None, "d", None, False, None, None, 0)
    return Statement(query, StatementKind.DML, 0)


def test_statements_of_one_context_follow_the_own_state() -> None:
    states = StatementStates(TRAITS, 7, None, b"''", rows_as_sql=False)
    says_nothing = update(SessionContext())
    says_on = update(SessionContext(explicit_defaults_for_timestamp=True))
    assert states.wanted(says_nothing)[VARIABLE] == b"1"
    assert states.timestamp_defaults(explicit=False)
    assert states.wanted(says_nothing)[VARIABLE] == b"0"
    assert states.wanted(says_on)[VARIABLE] == b"1"
    assert not states.timestamp_defaults(explicit=False)
    assert not states.timestamp_defaults(explicit=None)
    assert states.wanted(says_nothing)[VARIABLE] == b"0"
    states.leave_out((VARIABLE,))
    assert VARIABLE not in states.wanted(says_nothing)
