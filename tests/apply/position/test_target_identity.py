"""On which server a position is at home, and what is a copy of it."""

from mtsd.apply.position.target_identity import COPIED, TargetIdentity, copied

HOME = TargetIdentity("server_id 2", "db2:3306")
OTHER = TargetIdentity("server_id 3", "db3:3306")


def test_a_copy_is_refused_and_a_move_is_not() -> None:
    refused = copied("mtsd", HOME, OTHER)
    assert refused is not None
    assert refused.reason is COPIED
    assert copied("mtsd", None, OTHER) is None
    assert copied("mtsd", HOME, TargetIdentity(HOME.uuid, "db9:3306")) is None


def test_a_replica_of_the_target_that_was_promoted_while_the_daemon_ran() -> None:
    assert copied("mtsd", HOME, OTHER, HOME) is None
    assert copied("mtsd", HOME, OTHER, TargetIdentity("server_id 4", "db4:3306")) is not None
