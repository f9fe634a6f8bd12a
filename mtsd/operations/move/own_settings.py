"""What a server's own replica is set to, in the words of mtsd's configuration: `mtsd takeover`.

What mtsd has too becomes a key of config.toml; what it has not is a difference, with the name by
which a person says that it does not matter (`--accept`). Columns are those of SHOW REPLICA STATUS
by their present names (MySQL manual; MariaDB, "SHOW REPLICA STATUS"), and those of
mysql.slave_relay_log_info, where MySQL keeps what the status does not show.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mtsd.config import Settings
from mtsd.config.settings import Tls
from mtsd.filter.rules import Rules
from mtsd.model.errors import NeedsPersonError
from mtsd.replica.core.filters import rules_of
from mtsd.wire.exchange import Value
from mtsd.wire.replica_status import today_named
from mtsd.wire.replica_words import UNTIL_NO_GAPS

_RULES: Final = {
    "do_db": "replicate_do_db",
    "ignore_db": "replicate_ignore_db",
    "do_table": "replicate_do_table",
    "ignore_table": "replicate_ignore_table",
    "wild_do_table": "replicate_wild_do_table",
    "wild_ignore_table": "replicate_wild_ignore_table",
}
_RENAME: Final = re.compile(r"\(([^,()]+),([^,()]+)\)|([^,()]+)->([^,()]+)")
_NOTHING: Final = frozenset({"", "0", "NONE", "OFF", "NO", "STREAM", UNTIL_NO_GAPS, "DONE"})
_ONLY_THERE: Final = {
    "replicate_ignore_server_ids": "it leaves out what some servers wrote",
    "replicate_do_domain_ids": "it applies some GTID domains only",
    "replicate_ignore_domain_ids": "it leaves out some GTID domains",
    "require_row_format": "it refuses statements",
    "assign_gtids_to_anonymous_transactions_type": "it gives GTIDs to transactions that have none",
    "privilege_checks_username": "it applies with the rights of that account",
    "until_condition": "it was to stop at a place",
    "skip_counter": "it was to skip events",
}
"""What mtsd has no key for, by column; Require_table_primary_key_check may only refuse tables. That
it stops once nothing is missing (and is DONE) is what a takeover asks of it, and no place."""
_TLS_ORDER: Final[tuple[Tls, ...]] = (
    "disabled", "preferred", "required", "verify_ca", "verify_identity",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that the two do not have in common, under the name by which it is accepted."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.text} (--accept {self.name}, if that does not matter)"


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """What a channel of a server's own replica is set to, as far as mtsd has it too."""

    rules: Rules
    delay: int
    """Seconds."""
    tls: Tls
    files: tuple[tuple[str, str], ...]
    """The keys of TLS files, with their paths on the target's machine."""
    only_there: tuple[Difference, ...]


def own_settings(
    status: Mapping[str, Value], more: Mapping[str, Value] | None = None
) -> OwnSettings:
    """Parse the row of a channel, and `more` columns of another table about it."""
    columns = {today_named(name): value for name, value in status.items()}
    columns |= {name.lower(): value for name, value in (more or {}).items()}

    def text(name: str) -> str:
        value = columns.get(name)
        return "" if value is None else str(value)

    # A list of server ids is in parentheses on some versions.
    only_there = tuple(
        Difference(name, f"the server's own replica has {name} = {text(name)}: {what}")
        for name, what in _ONLY_THERE.items()
        if text(name).strip("() ").upper() not in _NOTHING
    )
    files = {
        "tls_ca": "source_ssl_ca_file",
        "tls_cert": "source_ssl_cert",
        "tls_key": "source_ssl_key",
    }
    return OwnSettings(
        Rules(
            **{name: tuple(_listed(text(column))) for name, column in _RULES.items()},
            rewrite_db=tuple(_renames(text("replicate_rewrite_db"))),
        ),
        int(text("sql_delay") or 0),
        _tls(text),
        tuple((key, text(column)) for key, column in files.items() if text(column)),
        only_there,
    )


def differences(own: OwnSettings, settings: Settings, *, encrypted: bool) -> list[Difference]:
    """Return in what the configuration would apply otherwise than the server's own replica.

    `encrypted`: mtsd's connection to the source is, even where that is only preferred.
    """
    found = list(own.only_there)
    rules = rules_of(settings.filter)
    if _sorted(own.rules) != _sorted(rules):
        found.append(
            Difference(
                "filter",
                f"the server's own replica has the filter {own.rules or 'that lets all pass'}, and"
                f" [filter] has {rules or 'none'}",
            )
        )
    if own.delay != settings.replica.delay:
        found.append(
            Difference(
                "delay",
                f"the server's own replica is {own.delay} s behind on purpose, and [replica] delay"
                f" is {settings.replica.delay}",
            )
        )
    here: Tls = "required" if encrypted else "disabled"
    if settings.source.tls != "preferred":
        here = settings.source.tls
    if _TLS_ORDER.index(own.tls) > _TLS_ORDER.index(here):
        found.append(
            Difference(
                "tls",
                f'the server\'s own replica reads with TLS as "{own.tls}" means it, and [source]'
                f' tls is "{settings.source.tls}"',
            )
        )
    return found


def after_a_restart(of_file: Mapping[str, Value], settings: Settings) -> list[Difference]:
    """Return in what the filter of a target's option file is another one than [filter].

    `of_file` is that filter, by column. What statements set lasts until the server's next start:
    then its own replica would apply what it must not, or leave out what it must apply.
    """
    there, here = own_settings(of_file).rules, rules_of(settings.filter)
    if _sorted(there) == _sorted(here):
        return []
    return [
        Difference(
            "option_file",
            f"the target's option file has the filter {there or 'that lets all pass'}, which the"
            f" own replica has from the server's next start on, and [filter] has {here or 'none'}:"
            " write it there as replicate-… options",
        )
    ]


def fragment(own: OwnSettings) -> list[str]:
    """Return the lines of config.toml that have what the server's own replica is set to."""
    sections: dict[str, list[str]] = {"source": [], "replica": [], "filter": []}
    if own.tls != "disabled":
        sections["source"].append(f"tls = {json.dumps(own.tls)}")
        sections["source"] += [
            f"{key} = {json.dumps(path)}   # that file, on this machine" for key, path in own.files
        ]
    if own.delay:
        sections["replica"].append(f"delay = {own.delay}")
    given = json.loads(own.rules.text())
    sections["filter"] += [f"{name} = {json.dumps(value)}" for name, value in given.items()]
    return [line for name, lines in sections.items() if lines for line in (f"[{name}]", *lines)]


def require_accepted(found: Iterable[Difference], accepted: Collection[str]) -> None:
    """Raise NeedsPersonError if there are differences that nobody has accepted."""
    left = [str(each) for each in found if each.name not in accepted]
    if left:
        raise NeedsPersonError("; ".join(left))


def told(found: Iterable[Difference], accepted: Collection[str]) -> Iterator[str]:
    """Yield a line for each difference, and for each name that was accepted and is none of them."""
    names = set()
    for each in found:
        names.add(each.name)
        yield f"differs: {each}"
    for name in sorted(set(accepted) - names):
        yield f"--accept {name}: nothing here has that name"


def _listed(text: str) -> Iterator[str]:
    return (each.strip() for each in text.split(",") if each.strip())


def _renames(text: str) -> Iterator[tuple[str, str]]:
    for found in _RENAME.finditer(text):
        before, after = (part for part in found.groups() if part is not None)
        yield before.strip(), after.strip()


def _tls(text: Callable[[str], str]) -> Tls:
    if text("source_ssl_allowed") != "Yes":
        return "disabled"
    if text("source_ssl_verify_server_cert") == "Yes":
        return "verify_identity"
    return "verify_ca" if text("source_ssl_ca_file") else "required"


def _sorted(rules: Rules) -> dict[str, object]:
    return {name: sorted(map(str, each)) for name, each in json.loads(rules.text()).items()}
