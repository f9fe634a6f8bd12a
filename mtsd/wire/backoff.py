"""How long to wait before connecting again."""

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Exponential pauses with a cap and full jitter; times in seconds."""

    first: float = 0.1
    cap: float = 10.0
    attempts: int = 0
    _random: random.Random = field(default_factory=random.Random)

    def next_pause(self) -> float:
        """Return the pause before the next attempt."""
        ceiling = min(self.cap, self.first * 2.0 ** min(self.attempts, 32))
        self.attempts += 1
        return self._random.uniform(ceiling / 2, ceiling)

    def reset(self) -> None:
        """Return to short pauses: the last attempt was successful."""
        self.attempts = 0
