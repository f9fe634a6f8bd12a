from mtsd.daemon.past import NEEDS_NOTHING, Needs


def test_how_long_the_source_keeps_what_is_needed() -> None:
    assert Needs(since=1000.0, retention_s=3600.0).left(1600.0) == 3000.0
    assert Needs(since=1000.0, retention_s=60.0).left(1600.0) == -540.0
    assert Needs(since=1000.0).left(1600.0) is None
    assert NEEDS_NOTHING.left(1600.0) is None


def test_what_a_new_run_has_not_asked_yet_is_as_it_was() -> None:
    before = Needs(since=1000.0, retention_s=3600.0)
    assert NEEDS_NOTHING.over(before) == before
    assert Needs(since=1200.0).over(before) == Needs(1200.0, 3600.0)
