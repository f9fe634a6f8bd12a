"""What tells of a group in doubt, for every record that there can be."""

from itertools import product

from mtsd.model.group import GroupKind
from mtsd.model.position import Position
from mtsd.model.reason import Refused
from mtsd.replica.verdict import LOG_PURGED, NO_EVIDENCE, NON_TRANSACTIONAL, Verdict, judge
from mtsd.target.position_tables import InDoubt

GTID = "3e11fa47-71ca-11e1-9e33-c80aa9429562:8"
LOG = "binlog.000002"


def test_every_record_is_judged() -> None:
    for kind, evidence, file, statement, said, executed, logs in product(
        GroupKind,
        (GTID, ""),
        (LOG, ""),
        (b"CREATE TABLE a.t (i INT)", b"ALTER TABLE a.t ADD INDEX (i)"),
        ("", "applied", "not applied"),
        (True, False),
        (None, (LOG,), ("binlog.000003",)),
    ):
        doubt = InDoubt(
            8, 1, Position("f", 4), kind.value, evidence, "", "a", statement, file, 4, 7, said
        )
        found = judge(doubt, executed=executed, logs=logs)
        if said:
            assert isinstance(found, Verdict)
            assert found.value == said
        elif kind is GroupKind.NON_TRANSACTIONAL and evidence and file and not executed:
            assert found is Verdict.NOT_BEGUN
        elif kind is GroupKind.NON_TRANSACTIONAL:
            # Its GTID is used up by its first change.
            assert isinstance(found, Refused)
            assert found.reason is NON_TRANSACTIONAL
        elif evidence and executed:
            assert found is Verdict.APPLIED
        elif evidence:
            assert found is Verdict.NOT_APPLIED
        elif kind is GroupKind.XA_PREPARE:
            assert found is Verdict.PREPARED
        elif kind is GroupKind.XA_COMPLETE:
            assert found is Verdict.COMPLETED
        elif file and (logs is None or file in logs):
            assert found is Verdict.LOGGED
        elif file:
            assert isinstance(found, Refused)
            assert found.reason is LOG_PURGED
        elif statement.startswith(b"CREATE"):
            assert found is Verdict.SHOWS_ITSELF
        else:
            assert isinstance(found, Refused)
            assert found.reason is NO_EVIDENCE
        if isinstance(found, Refused):
            text = str(found)
            assert "mtsd resolve --group 8 --applied" in text
            assert "--not-applied" in text
            assert "group 8, ending at f:4, in databases 'a'" in text
