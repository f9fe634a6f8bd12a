"""When the service manager's watchdog gets its sign: while the dispatcher is alive."""

from mtsd.model.pulse import Pulse


class Watchdog:
    """Looks at the dispatcher's pulse twice in each of the watchdog's periods.

    Between two looks the dispatcher has to have made a turn, or has to wait for something that it
    is allowed to wait for. An event loop that lives is not enough: the coroutine that everything
    depends on may hang in it.
    """

    def __init__(self) -> None:
        self._pulse: Pulse | None = None
        self._turns = 0
        self.hangs = False
        """Whether the last look found no life."""

    def look(self, pulse: Pulse | None) -> bool:
        """Tell whether there is life; `pulse` is None while no run is on, which is life too."""
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
