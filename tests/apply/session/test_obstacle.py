"""What is waited for without end, and how that is told."""

import pytest
from structlog.testing import capture_logs

from mtsd.apply.session.obstacle import (
    FULL,
    READ_ONLY,
    Obstacles,
    obstacle_of,
    obstacle_pause,
)
from mtsd.model.errors import ServerError

READ_ONLY_TEXT = (
    "The MySQL server is running with the --super-read-only option so it cannot execute this"
    " statement"
)


def error(number: int, text: str = "", server: str = "target 127.0.0.1:1") -> ServerError:
    made = ServerError(number, "HY000", text)
    made.server = server
    return made


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (error(1114, "The table 't' is full"), FULL),
        (error(1021, "Disk full (/tmp)"), FULL),
        (error(1026), FULL),
        (error(3), FULL),
        (error(28), FULL),
        (error(1878, "Temporary file write failure."), FULL),
        (error(3675, "Create table/tablespace 'u' failed, as disk is full"), FULL),
        (error(1030, "Got error 28 from storage engine"), FULL),
        (error(1030, "Got error 28 - 'No space left on device' from storage engine"), FULL),
        (error(1005, 'Can\'t create table `a`.`t` (errno: 28 "No space left on device")'), FULL),
        (error(1290, READ_ONLY_TEXT), READ_ONLY),
        (error(1290, READ_ONLY_TEXT.replace("super-read-only", "read-only")), READ_ONLY),
        (error(1290, READ_ONLY_TEXT.replace("super-read-only", "secure-file-priv")), ""),
        (error(1836, "Running in read-only mode."), READ_ONLY),
        (error(1030, "Got error 128 from storage engine"), ""),
        (error(1205), ""),
        (error(1062, "Duplicate entry '28' for key"), ""),
        (error(1021, "Disk full", "source 127.0.0.1:1"), ""),
    ],
)
def test_what_is_an_obstacle(said: ServerError, expected: str) -> None:
    assert obstacle_of(said) == expected


def test_pauses_grow_to_a_limit() -> None:
    pauses = [obstacle_pause(attempt) for attempt in range(1, 1000)]
    assert pauses[:3] == [0.05, 0.1, 0.2]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 10.0


def shown(obstacles: Obstacles) -> tuple[str, int]:
    return obstacles.what, 0 if obstacles.error is None else obstacles.error.number


def test_all_who_wait_are_one_line_and_the_last_one_ends_it() -> None:
    now = [0.0]
    obstacles = Obstacles(lambda: now[0], lambda: 0.0)
    full, frozen = error(1114, "The table 't' is full"), error(1290, READ_ONLY_TEXT)
    with capture_logs() as records:
        for second in range(0, 400, 4):
            now[0] = float(second)
            obstacles.met("worker 1", full, 4.0)
            obstacles.met("worker 2", full, 4.0)
        assert [each["waited_s"] for each in records] == [0, 60, 300]
        assert {each["event"] for each in records} == {f"waiting: {FULL}"}
        obstacles.met("worker 3", frozen, 4.0)
        assert records[-1]["event"] == f"waiting: {READ_ONLY}"
        assert (obstacles.of("worker 3"), obstacles.of("worker 4")) == (READ_ONLY, "")
        obstacles.passed("worker 3")
        obstacles.passed("worker 1")
        obstacles.passed("worker 4")
        assert shown(obstacles) == (FULL, 1290)
        obstacles.passed("worker 2")
        assert records[-1]["event"] == "the target takes changes again"
        assert records[-1]["waited_s"] == 396
        assert shown(obstacles) == ("", 0)
        # Whoever gives up does not say that it is over.
        obstacles.met("worker 1", full, 4.0)
        said = len(records)
        obstacles.left("worker 1")
        assert len(records) == said
    assert shown(obstacles) == ("", 0)
