"""The statements by which a server's own replica goes on where mtsd stops: `mtsd handover`.

All of mtsd's configuration is translated; what the own replica has nothing for is a difference,
with the name by which a person says that it does not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mtsd.apply.sql.literals import shown_name
from mtsd.config import Settings
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.move.own_settings import Difference
from mtsd.operations.move.steps import MoveStatement
from mtsd.replica.core.filters import rules_of
from mtsd.wire.replica_words import ReplicaWords, sql_text

_SHOWN: Final = "'…'"


@dataclass(frozen=True, slots=True)
class ReplicaAccount:
    """How the target reaches the source, and the account that it reads with there."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class GoesOn:
    """Where the own replica goes on: by GTID if `gtids` is not None, else by file."""

    gtids: GtidSet | None
    position: Position


def only_here(settings: Settings) -> list[Difference]:
    """Return what mtsd is set to that a server's own replica has nothing for."""
    replica, target = settings.replica, settings.target
    given = {
        "newer_row_column": bool(replica.newer_row_column),
        "exec_mode": replica.exec_mode == "idempotent" or replica.consistency == "eventual",
        "skip_errors": bool(replica.skip_errors),
        "definer": target.definer != "source",
        "binary_log": not target.binary_log,
    }
    what = {
        "newer_row_column": "of two rows the newer one wins",
        "exec_mode": "a row that is there already, or missing, is no error (replica_exec_mode)",
        "skip_errors": "some errors skip the transaction (replica_skip_errors)",
        "definer": "views and routines have the rights of mtsd's user",
        "binary_log": "the target's binary log has nothing of what is applied (the own replica"
        " writes it, unless log_replica_updates is OFF)",
    }
    return [
        Difference(name, f"mtsd is set to {name}: {what[name]}; a server's own replica is not")
        for name, is_given in given.items()
        if is_given
    ]


def configuring(
    words: ReplicaWords,
    channel: str,
    settings: Settings,
    account: ReplicaAccount,
    place: GoesOn,
    *,
    encrypted: bool,
) -> tuple[MoveStatement, ...]:
    """Return the statements that configure the own replica of the target.

    `encrypted`: mtsd's own connection to the source is, which decides for tls = "preferred".
    """
    options = {
        "SOURCE_HOST": sql_text(account.host),
        "SOURCE_PORT": str(account.port),
        "SOURCE_USER": sql_text(account.user),
        "SOURCE_PASSWORD": sql_text(account.password),
        **_tls(words, settings, encrypted=encrypted),
        "SOURCE_DELAY": str(settings.replica.delay),
        **_place(words, place),
    }
    shown = {**options, "SOURCE_PASSWORD": _SHOWN}
    change = MoveStatement("target", words.change(channel, options), words.change(channel, shown))
    filters = words.filter(channel, _filters(words, settings))
    return (change, *(MoveStatement.plain("target", each) for each in filters))


def _place(words: ReplicaWords, place: GoesOn) -> Mapping[str, str]:
    by, value = words.by_gtid
    if place.gtids is not None:
        return {by: value}
    return {
        by: "no" if words.follows_variable else "0",
        "SOURCE_LOG_FILE": sql_text(place.position.file),
        "SOURCE_LOG_POS": str(place.position.offset),
    }


def _tls(words: ReplicaWords, settings: Settings, *, encrypted: bool) -> Mapping[str, str]:
    source = settings.source
    if source.tls == "disabled" or not encrypted:
        # A MariaDB has TLS on where nothing is said.
        off = {"SOURCE_SSL": "0", "SOURCE_SSL_VERIFY_SERVER_CERT": "0"}
        asks = source.get_public_key and words.asks_for_key
        return off | ({"GET_SOURCE_PUBLIC_KEY": "1"} if asks else {})
    files = {
        "SOURCE_SSL_CA": source.tls_ca,
        "SOURCE_SSL_CERT": source.tls_cert,
        "SOURCE_SSL_KEY": source.tls_key,
    }
    return {
        "SOURCE_SSL": "1",
        "SOURCE_SSL_VERIFY_SERVER_CERT": str(int(source.tls == "verify_identity")),
        **{name: sql_text(str(path)) for name, path in files.items() if path is not None},
    }


def _filters(words: ReplicaWords, settings: Settings) -> Mapping[str, str]:
    rules = rules_of(settings.filter)
    names = {
        "REPLICATE_DO_DB": rules.do_db,
        "REPLICATE_IGNORE_DB": rules.ignore_db,
        "REPLICATE_DO_TABLE": rules.do_table,
        "REPLICATE_IGNORE_TABLE": rules.ignore_table,
        "REPLICATE_WILD_DO_TABLE": rules.wild_do_table,
        "REPLICATE_WILD_IGNORE_TABLE": rules.wild_ignore_table,
    }
    if words.named_within:
        found = {name: sql_text(",".join(given)) for name, given in names.items() if given}
        renamed = ",".join(f"{before}->{after}" for before, after in rules.rewrite_db)
        return found | ({"REPLICATE_REWRITE_DB": sql_text(renamed)} if renamed else {})
    found = {name: _names(name, given) for name, given in names.items() if given}
    pairs = ", ".join(f"({shown_name(one)}, {shown_name(two)})" for one, two in rules.rewrite_db)
    return found | ({"REPLICATE_REWRITE_DB": pairs} if pairs else {})


def _names(rule: str, given: tuple[str, ...]) -> str:
    if "WILD" in rule:
        return ", ".join(map(sql_text, given))
    if rule.endswith("_DB"):
        return ", ".join(map(shown_name, given))
    return ", ".join(".".join(map(shown_name, each.split(".", 1))) for each in given)
