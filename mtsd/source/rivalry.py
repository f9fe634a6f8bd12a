"""Which of two daemons gives way that read from a source as the same replica.

The source ends the older of their two connections, so that each of them throws out the other when
it connects. A copy of a target together with its position tables does that, or the same server_id
on a MariaDB. Both daemons decide by themselves here, so that the newcomer gives way:

- Who finds the other already registered when it comes, has to give way when it is thrown out for
  the first time. It may come all the same: what is registered may be the end of its own former
  connection, which the source has not noticed yet, and then nobody throws it out.
- Where that is not to be seen (MariaDB), each has a number of attempts, more of them the longer it
  was connected before the fight.
- Who was connected for `ESTABLISHED_S` before the fight never gives way.

Example: A has been connected for an hour. B comes, finds A registered, and A is thrown out. A comes
back at once, as one that was there before. B is thrown out, and gives way.
"""

from typing import Final

ESTABLISHED_S: Final = 60.0
_OFTEN: Final = 2
_ATTEMPTS: Final = 2
_MORE_PER_S: Final = 10
_STEP_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0


class Rivalry:
    """One daemon's side of it. Times are in seconds, of a clock that is never set."""

    __slots__ = (
        "_challenges", "_ended", "_had_been_there", "_met", "_since", "_thrown", "_thrown_last",
    )  # fmt: skip

    def __init__(self) -> None:
        self._since: float | None = None
        """When it connected first, or after it had been away for long."""
        self._ended: float | None = None
        """When its last connection ended; None while it lasts."""
        self._challenges = False
        """Whether another one was registered then."""
        self._thrown_last: float | None = None
        self._thrown = 0
        """How often it has been thrown out in the present fight."""
        self._had_been_there = 0.0
        """How long it had been connected when the fight began."""
        self._met: list[float] = []
        """When another replica with the same server_id was recently encountered."""

    def returns(self, now: float) -> bool:
        """Return whether a connection that begins now continues one that has only just ended."""
        if self._since is None:
            return False
        return self._ended is None or now - self._ended < ESTABLISHED_S

    def connected(self, now: float, *, found_another: bool) -> None:
        """Note a new connection; `found_another`: this replica was already registered."""
        if not self.returns(now):
            self._since = now
            self._challenges = found_another
        self._ended = None

    def ended(self, now: float) -> None:
        """Note that the connection has ended, for any reason."""
        if self._ended is None:
            self._ended = now

    def is_in_the_way(self, now: float, noticed_s: float) -> bool:
        """Note that another replica has this one's server_id; return whether it will stay so.

        It may be gone: the source notices that when it next sends something, within `noticed_s`.
        """
        self._met = [when for when in self._met if now - when < ESTABLISHED_S + noticed_s]
        self._met.append(now)
        return len(self._met) > _OFTEN and now - self._met[0] > min(noticed_s, ESTABLISHED_S)

    @property
    def pause(self) -> float:
        """How long to wait before coming back: two that both stay take turns, and do not race."""
        return min(self._thrown * _STEP_S, _LONGEST_PAUSE_S)

    def gives_way(self, now: float) -> bool:
        """Decide, when the source has ended the connection for a newer one of this replica."""
        self.ended(now)
        if self._thrown_last is None or now - self._thrown_last > ESTABLISHED_S:
            self._had_been_there = 0.0 if self._since is None else now - self._since
            self._thrown = 0
        self._thrown_last = now
        self._thrown += 1
        if self._had_been_there >= ESTABLISHED_S:
            return False
        attempts = _ATTEMPTS + _MORE_PER_S * self._had_been_there
        return self._challenges or self._thrown > attempts
