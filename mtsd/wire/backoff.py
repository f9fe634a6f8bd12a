"""How long to wait before connecting again."""

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Exponential pauses with a cap and full jitter; times in seconds."""

    first: float = 0.1
    cap: float = 10.0
    steady: float = 60.0
    """A connection that has lasted so long was a good one, even if there was nothing to do."""
    attempts: int = 0
    _random: random.Random = field(default_factory=random.Random)

    def next_pause(self) -> float:
        """Return the pause before the next attempt."""
        ceiling = min(self.cap, self.first * 2.0 ** min(self.attempts, 32))
        self.attempts += 1
        return self._random.uniform(ceiling / 2, ceiling)

    def ended(self, lasted: float, *, of_use: bool) -> None:
        """Note that a connection has ended; short pauses return if it was of any use.

        A login is none: a server may accept each one, and end it again at the same statement.
        """
        if of_use or lasted >= self.steady:
            self.reset()

    def reset(self) -> None:
        """Return to short pauses."""
        self.attempts = 0
