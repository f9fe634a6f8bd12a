from mtsd.wire.backoff import Backoff


def test_a_login_alone_does_not_shorten_the_pauses() -> None:
    backoff = Backoff()
    pauses = []
    for _ in range(12):
        pauses.append(backoff.next_pause())
        backoff.ended(1.0, of_use=False)
    assert pauses[0] <= 0.1
    assert pauses[-1] >= 5.0
    for lasted, of_use in ((0.0, True), (86_400.0, False)):
        backoff.ended(lasted, of_use=of_use)
        assert backoff.next_pause() <= 0.1
