"""Why a daemon has ended, kept for whoever comes later."""

from dataclasses import dataclass

from mtsd.model.errors import MtsdError


@dataclass(frozen=True, slots=True)
class LastStop:
    """The end of a channel's last daemon.

    `time` is in seconds since 1970. `text` is the whole error, "" after a graceful stop; `number`
    is the server's error number and `group` the number of the group that it is about, or 0.
    """

    time: float
    graceful: bool
    text: str = ""
    number: int = 0
    group: int = 0

    @classmethod
    def by(cls, error: BaseException | None, text: str, time: float) -> "LastStop":
        """Return that of an error, whose whole message is `text`; without a text, a graceful one.

        What is told without an error concerns no group.
        """
        group = error.group if isinstance(error, MtsdError) else None
        number = error.number if isinstance(error, MtsdError) else 0
        if group is not None:
            number = number or group.error
        return cls(
            time, error is None and not text, text, number, group.number if group is not None else 0
        )


@dataclass(frozen=True, slots=True)
class StopNote:
    """What a daemon has left on its own machine: that it began, or a stop told to no target.

    `time` is that of the one or the other, in seconds since 1970; `stop` is None of a daemon that
    has not said why it ended.
    """

    time: float
    stop: LastStop | None


def newest_stop(on_target: LastStop | None, note: StopNote | None) -> LastStop | None:
    """Return how the last daemon has ended; None if it did not say.

    The target may know of a later one, which ran on another machine.
    """
    if note is None or (on_target is not None and on_target.time >= note.time):
        return on_target
    return note.stop
