"""When the service manager's watchdog gets its sign: while the dispatcher is alive."""

from mtsd.model.pulse import Pulse


class Watchdog:
    """Checks the dispatcher's pulse twice in each of the watchdog's periods.

    Between two checks the dispatcher must have made a turn, or must be waiting for something that
    it is allowed to wait for. A running event loop is not enough: the coroutine that everything
    depends on may hang in it.
    """

    def __init__(self) -> None:
        self._pulse: Pulse | None = None
        self._turns = 0
        self.hangs = False
        """Whether the last check found no sign of life."""

    def check(self, pulse: Pulse | None) -> bool:
        """Return whether there is life; without a run (None) there is."""
        alive = (
            pulse is None
            or pulse is not self._pulse
            or pulse.waits_for is not None
            or pulse.turns != self._turns
        )
        self._pulse = pulse
        self._turns = pulse.turns if pulse is not None else 0
        self.hangs = not alive
        return alive
