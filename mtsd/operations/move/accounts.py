"""Whether the accounts of the source may do on the target what they may on the source."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from mtsd.operations.move.admin import AdminSession
from mtsd.operations.move.own_settings import Difference
from mtsd.wire.replica_words import sql_text

Privilege = tuple[str, str]
"""What, and on what."""
Accounts = Mapping[str, frozenset[Privilege]]
"""Privileges by account, as SQL: `'user'@'host'`."""
_GRANT: Final = re.compile(r"GRANT (.+?) ON (?:TABLE |PROCEDURE |FUNCTION )?(\S+) TO ")
_ROLE: Final = re.compile(r"GRANT (.+?) TO ")
_BETWEEN: Final = re.compile(r",\s*(?![^()]*\))")
_EVERYTHING: Final = ("ALL PRIVILEGES", "*.*")
_OF_SERVER: Final = frozenset({
    "mysql.sys", "mysql.session", "mysql.infoschema", "mariadb.sys", "event_scheduler",
})  # fmt: skip
_SHOWN: Final = 5


def privileges_in(grants: Iterable[str]) -> frozenset[Privilege]:
    """Parse what SHOW GRANTS prints, without passwords, and without the right to say nothing.

    >>> sorted(privileges_in(["GRANT SELECT, UPDATE (a, b) ON `s`.* TO `u`@`%`"]))
    [('SELECT', '`s`.*'), ('UPDATE (a, b)', '`s`.*')]
    """
    found = set()
    for line in grants:
        if grant := _GRANT.match(line):
            names, on = grant.groups()
            found |= {(name, on) for name in _BETWEEN.split(names) if name != "USAGE"}
        elif role := _ROLE.match(line):
            found |= {(name, "") for name in _BETWEEN.split(role[1])}
    return frozenset(found)


def lacking(
    source: Accounts,
    target: Accounts,
    *,
    same_family: bool,
) -> list[Difference]:
    """Return what accounts, by their names, have on the source and not on the target.

    Two families name privileges otherwise: then an account only has to be there.
    """
    found = []
    for account, privileges in source.items():
        held = target.get(account)
        if held is None:
            found.append(f"{account} is not there")
        elif same_family and _EVERYTHING not in held and (less := privileges - held):
            what = ", ".join(f"{name} ON {on}" if on else name for name, on in sorted(less))
            found.append(f"{account} lacks {what}")
    if not found:
        return []
    more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return [Difference("accounts", f"accounts on the target: {'; '.join(found[:_SHOWN])}{more}")]


async def read_accounts(
    session: AdminSession, without: Collection[str]
) -> dict[str, frozenset[Privilege]]:
    """Query the accounts of a server and their privileges, except some users'.

    Raises ServerError, ConnectionLostError.
    """
    rows = await session.query("SELECT user, host FROM mysql.user WHERE host <> ''")
    found = {}
    for user, host in rows:
        if str(user) in _OF_SERVER or str(user) in without or not user:
            continue
        account = f"{sql_text(str(user))}@{sql_text(str(host))}"
        grants = await session.query(f"SHOW GRANTS FOR {account}")
        found[account] = privileges_in(str(grant) for (grant,) in grants)
    return found
