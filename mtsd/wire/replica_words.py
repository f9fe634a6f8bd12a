"""The statements about a server's own replica, which each family and version words otherwise.

MySQL names a channel behind the statement, MariaDB a connection within it (manuals, "START REPLICA
Statement", "CHANGE REPLICATION SOURCE TO Statement"; MariaDB, "CHANGE MASTER TO", "Multi-Source
Replication"):

    >>> MYSQL_REPLICA.stop("east")
    "STOP REPLICA FOR CHANNEL 'east'"
    >>> MARIADB_REPLICA.forget("east")
    "RESET SLAVE 'east' ALL"
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

UNTIL_NO_GAPS: Final = "SQL_AFTER_MTS_GAPS"
"""The condition of an applier that stops once nothing is missing between its workers."""


def sql_text(value: str) -> str:
    """Return a text as a literal that means the same in every sql_mode."""
    if "\\" in value:
        # With NO_BACKSLASH_ESCAPES it would be doubled for good.
        return "_utf8mb4 X'" + value.encode("utf-8").hex() + "'"
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class ReplicaWords:
    """How a family names what belongs to a server's own replica."""

    replica: str
    source: str
    """What options begin with, and conditions are named by."""
    changes: str
    """The statement that configures it, up to TO."""
    named_within: bool
    """Whether the channel's name stands inside the statement, before TO or ALL."""
    fills_gaps: str
    """The condition at which its applier stops once nothing is missing between its workers; "" if
    there never is."""
    by_gtid: tuple[str, str]
    """The option, and its value, with which it reads by GTID."""
    follows_variable: bool
    """Where it goes on by GTID is a variable of the server (gtid_slave_pos), rather than all that
    the server has executed."""
    asks_for_key: bool
    """Without TLS, it can ask the source for the key that protects the password."""

    def stop(self, channel: str) -> str:
        """Return the statement that stops both of its threads."""
        return self._about("STOP", channel)

    def start(self, channel: str, *, receiver: bool = True, applier: bool = True) -> str:
        """Return the statement that starts one of its threads, or both."""
        thread = "" if receiver and applier else " IO_THREAD" if receiver else " SQL_THREAD"
        return self._about("START", channel, thread)

    def fill_gaps(self, channel: str) -> str:
        """Return the statement that applies what is missing between its workers, and no more."""
        return self._about("START", channel, f" SQL_THREAD UNTIL {self.fills_gaps}")

    def forget(self, channel: str) -> str:
        """Return the statement that removes its configuration, so that no start finds it."""
        return self._about("RESET", channel, " ALL")

    def change(self, channel: str, options: Mapping[str, str]) -> str:
        """Return the statement that configures it; options by name, values as SQL.

        A name that contains SOURCE is worded as the family has it.
        """
        given = ", ".join(
            f"{name.replace('SOURCE', self.source)}={value}" for name, value in options.items()
        )
        if self.named_within:
            return f"{self.changes}{_within(channel)} TO {given}"
        return f"{self.changes} TO {given}{_behind(channel)}"

    def filter(self, channel: str, rules: Mapping[str, str]) -> tuple[str, ...]:
        """Return the statements that set its filters: rules by name, such as REPLICATE_DO_DB.

        Values are lists as SQL: names on MySQL, one text on MariaDB.
        """
        if not rules:
            return ()
        if self.named_within:
            prefix = f"{channel}." if channel else ""
            return tuple(
                f"SET GLOBAL {prefix}{name.lower()} = {value}" for name, value in rules.items()
            )
        given = ", ".join(f"{name} = ({value})" for name, value in rules.items())
        return (f"CHANGE REPLICATION FILTER {given}{_behind(channel)}",)

    def _about(self, verb: str, channel: str, rest: str = "") -> str:
        if self.named_within:
            return f"{verb} {self.replica}{_within(channel)}{rest}"
        return f"{verb} {self.replica}{rest}{_behind(channel)}"


def _within(channel: str) -> str:
    return f" {sql_text(channel)}" if channel else ""


def _behind(channel: str) -> str:
    return f" FOR CHANNEL {sql_text(channel)}"


MYSQL_REPLICA: Final = ReplicaWords(
    replica="REPLICA",
    source="SOURCE",
    changes="CHANGE REPLICATION SOURCE",
    named_within=False,
    fills_gaps=UNTIL_NO_GAPS,
    by_gtid=("SOURCE_AUTO_POSITION", "1"),
    follows_variable=False,
    asks_for_key=True,
)
MYSQL_SLAVE: Final = replace(
    MYSQL_REPLICA, replica="SLAVE", source="MASTER", changes="CHANGE MASTER"
)
MARIADB_REPLICA: Final = ReplicaWords(
    replica="SLAVE",
    source="MASTER",
    changes="CHANGE MASTER",
    named_within=True,
    fills_gaps="",
    by_gtid=("SOURCE_USE_GTID", "slave_pos"),
    follows_variable=True,
    asks_for_key=False,
)
"""Its parallel replicas commit in the order of the log."""
SAYS_SOURCE: Final = (8, 0, 23)
"""The version of MySQL from which CHANGE REPLICATION SOURCE is a statement."""
