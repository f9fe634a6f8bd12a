"""The settings in force: the configuration, and over it what a person has set by hand.

A setting that was set over the status socket holds until the daemon ends, or until a reload brings
another value of the same key.
"""

from dataclasses import dataclass, replace
from typing import Final

from mtsd.config import Reloaded, Settings, reloaded
from mtsd.control.distribute_route import Change
from mtsd.control.status import DistributionStatus
from mtsd.daemon.by_hand import ByHand
from mtsd.daemon.reload_checks import check_distribution, check_tls_files

_NOTHING: Final = ByHand()


@dataclass(frozen=True, slots=True)
class InForce:
    """Both, and what they come to: `settings` are `configured` with what was set `by_hand`."""

    configured: Settings
    by_hand: ByHand
    settings: Settings

    @classmethod
    def of(cls, configured: Settings, by_hand: ByHand = _NOTHING) -> "InForce":
        """Return what is in force."""
        return cls(configured, by_hand, by_hand.over(configured))

    def reloaded(self, read: Settings) -> tuple["InForce", Reloaded]:
        """Return it after a reload that has `read` these settings, and what each key comes to.

        Raises ConfigurationError if they cannot be used.
        """
        change = reloaded(self.configured, read)
        check_tls_files(change.settings)
        after = InForce.of(change.settings, self.by_hand.without(change.applied))
        check_distribution(after.settings)
        return after, change

    def changed(self, change: Change) -> "InForce":
        """Return it with a person's change. Raises NotPossibleError."""
        return InForce.of(self.configured, self.by_hand.changed(change, self.settings))

    def released(self) -> "InForce":
        """Return it without frozen workers: a stop finishes what they have to."""
        return replace(self, by_hand=self.by_hand.released())

    @property
    def distribution(self) -> DistributionStatus:
        """What a person decides about the distribution."""
        return self.by_hand.status(self.settings)
