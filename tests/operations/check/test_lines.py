"""Every line that `mtsd check` can print comes from facts that call for it, and from no others."""

import re
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtsd.apply
import mtsd.replica
import mtsd.source
import mtsd.wire
from mtsd.apply.tables.table_columns import table_column
from mtsd.config import Latest
from mtsd.model.outcome.reason import Reason
from mtsd.operations.check.checking import check, lines
from mtsd.operations.check.facts import UserTable
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.operations.check.lines.line import Level, Line, duration, listed, size
from tests.operations.check.cases import CASES, DOUBT, UNREACHABLE, Case
from tests.operations.check.good_facts import (
    CHANNEL,
    DAEMON_UUID,
    EVERYTHING,
    SETTINGS,
    SOURCE,
    TABLE,
    TARGET,
    at,
    filtered,
    source,
    tables,
    target,
    target_settings,
)

ELSEWHERE = frozenset({
    Kind.TLS_FILE,
    Kind.STATUS_SOCKET_TAKEN, Kind.STATUS_SOCKET_NO_SOCKET, Kind.STATUS_SOCKET_FOLDER,
    Kind.OTHER_POLICY,
})  # fmt: skip
"""Have tests of their own, below and in test_status_socket."""
TOLD_OTHERWISE = {
    "ATTACHED": Kind.XA_ATTACHED,
    "AWAITED": Kind.HANDED_OVER,
    "BLACKHOLE": Kind.BLACKHOLES,
    "UNLOGGED": Kind.XA_UNLOGGED,
    "NOT_A_REPLICA": Kind.PRIVILEGES_MISSING,
    "TAKEN": Kind.READ_BY_ANOTHER,
    "HISTORY": Kind.VERSIONED,
    "NEEDED_PURGED": Kind.POSITION_PURGED_BEHIND,
    "NEEDED_SOON_PURGED": Kind.RETENTION_NEAR,
    "NOT_GENERATED": Kind.NOT_GENERATED,
    "NOT_LISTED": Kind.SPLIT_UNLISTED,
    "ON_MARIADB": Kind.SPLIT_ON_MARIADB,
    "MISFIT": Kind.COLUMNS_REFUSED,
    "MISSING": Kind.COLUMNS_REFUSED,
    "NO_TABLE": Kind.MISSING_TABLES,
    "TRIGGERS": Kind.TRIGGERS_REFUSED,
    "VERSIONED": Kind.VERSIONED_AS_SQL,
}
"""Refusals of the daemon that a line in other words foretells."""
NOT_KNOWN_BY_GTID = {
    # Nobody knows how an application will name its transactions.
    "FORMAT_TOO_LARGE", "NO_GLOBAL_PART",
    # Of two daemons that run at the same time.
    "RUNS_ALREADY", "MAY_RUN",
    # Looks like a target that has never had one.
    "SCHEMA_LOST",
}  # fmt: skip


def text(line: Line) -> str:
    return f"{line.found}; {line.remedy}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind.id)
def test_facts_bring_their_line(case: Case) -> None:
    said = list(lines(case.settings, case.source, case.target))
    of_kind = [line for line in said if line.id == case.kind.id]
    assert any(case.says in text(line) for line in of_kind), said
    assert all(line.level is case.kind.value.level for line in of_kind)


@pytest.mark.parametrize(("kind", "says", "line"), UNREACHABLE)
def test_what_keeps_from_looking_is_told_apart(kind: Kind, says: str, line: object) -> None:
    assert isinstance(line, Line)
    assert (line.id, line.level) == (kind.id, Level.ERROR)
    assert says in text(line)


async def test_a_missing_certificate_is_named() -> None:
    section = replace(SETTINGS.source, tls="verify_ca", tls_ca=Path("/no/such.pem"))
    settings = replace(SETTINGS, source=section, target=replace(SETTINGS.target, port=1))
    said = await check(settings)
    assert [line.id for line in said] == ["tls-file", "refused", "not-compared"]


def test_every_line_is_shown_by_a_test() -> None:
    shown = {case.kind for case in CASES} | {kind for kind, _, _ in UNREACHABLE} | ELSEWHERE
    assert set(Kind) - shown == set()


def test_every_refusal_of_the_daemon_is_foretold() -> None:
    told = [kind.value.reason for kind in Kind]
    reasons: dict[int, str] = {}
    for package in (mtsd.replica, mtsd.source, mtsd.apply, mtsd.wire):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(import_module(module.name)).items():
                if isinstance(value, Reason) and value not in told:
                    reasons[id(value)] = name
    assert set(reasons.values()) == {*TOLD_OTHERWISE, *NOT_KNOWN_BY_GTID}


def test_nothing_is_said_against_good_servers() -> None:
    for fine in (TARGET, at()):
        said = list(lines(SETTINGS, SOURCE, fine))
        assert [line for line in said if line.level is not Level.OK] == []
        assert all(not line.remedy for line in said)
        assert len({(line.id, line.subject) for line in said}) == len(said)


def test_what_is_wrong_has_a_remedy() -> None:
    for kind in Kind:
        assert bool(kind.value.remedy) == (kind.value.level is not Level.OK), kind


def test_a_server_out_of_reach_leaves_the_lines_of_the_other() -> None:
    down = Kind.REFUSED.line(server="source", address="db1:3306")
    ids = [line.id for line in lines(SETTINGS, down, TARGET)]
    assert ids[0] == "refused"
    assert "writable" in ids
    assert "position-tables-new" in ids
    assert ids[-1] == "not-compared"
    down = Kind.REFUSED.line(server="target", address="db1:3306")
    ids = [line.id for line in lines(SETTINGS, SOURCE, down)]
    assert "row-format" in ids
    assert ids[-2:] == ["refused", "not-compared"]


def test_privileges_on_the_replicated_databases_will_do() -> None:
    everywhere = "GRANT RELOAD, REPLICATION CLIENT ON *.* TO `u`@`%`"
    on_shop = EVERYTHING[0].replace("*.*", "`shop`.*").replace("RELOAD, ", "")
    on_mtsd = "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `mtsd`.* TO `u`@`%`"
    enough = (everywhere, EVERYTHING[1], on_shop, on_mtsd)
    assert "privileges-missing" not in ids(lines(SETTINGS, SOURCE, target(grants=enough)))
    other = UserTable("blog", "posts", transactional=True, keyed=True)
    said = list(lines(SETTINGS, source(tables=(TABLE, other)), target(grants=enough)))
    (line,) = (line for line in said if line.id == "privileges-missing")
    assert "TRIGGER on blog" in line.found
    assert "ON `blog`.* TO 'mtsd'@'%'" in line.remedy
    assert "shop" not in line.remedy
    # Where the source does not show its databases, all are meant.
    unseen = Kind.REFUSED.line(server="source", address="")
    said = list(lines(SETTINGS, unseen, target(grants=enough)))
    (line,) = (line for line in said if line.id == "privileges-missing")
    assert "GRANT SELECT, INSERT" in line.remedy
    assert "ON *.* TO" in line.remedy


def test_only_what_is_replicated_is_judged_under_its_name_there() -> None:
    """Neither tables that are left out, nor the names of databases that have another one there."""
    orders = UserTable("store", "orders", transactional=True, keyed=True)
    left_out = UserTable("logs", "visits", transactional=False, keyed=False)
    settings = filtered(rewrite_db=(("shop", "store"),), do_db=("store",))
    settings = replace(settings, source=replace(settings.source, start=Latest()))
    column = table_column(("c", "int", "int", None, None, None, None, "", ""))
    here = source(
        tables=(TABLE, left_out),
        columns={"shop.orders": [column], "logs.visits": [column]},
        triggers=("shop.t", "logs.u"),
    )
    there = target(
        tables=(orders,), columns={"store.orders": [column]}, triggers=("store.t",),
    )  # fmt: skip
    said = {line.id: line for line in lines(settings, here, there)}
    assert not said.keys() & {
        "no-key", "non-transactional", "missing-tables", "own-triggers", "filter-matches-nothing",
    }  # fmt: skip
    assert said["tables"].found.startswith("1 table,")
    assert said["columns"].found.startswith("1 table on both")
    everything = {line.id for line in lines(SETTINGS, here, there)}
    assert {"no-key", "non-transactional", "own-triggers"} <= everything
    # The privileges are needed on the databases of the target.
    everywhere = "GRANT RELOAD, REPLICATION CLIENT ON *.* TO `u`@`%`"
    on_store = EVERYTHING[0].replace("*.*", "`store`.*").replace("RELOAD, ", "")
    on_mtsd = "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `mtsd`.* TO `u`@`%`"
    grants = (everywhere, EVERYTHING[1], on_store, on_mtsd)
    assert "privileges-missing" not in ids(lines(settings, here, target(grants=grants)))


def test_what_the_filter_leaves_alone_is_not_judged() -> None:
    """Triggers of tables that rows are not applied to, and foreign keys of such tables."""
    other = UserTable("logs", "visits", transactional=True, keyed=True)
    here = source(tables=(TABLE, other), foreign_keys_across=("logs.visits -> old.users",))
    there = target(
        tables=(TABLE, other),
        triggers=("logs.g", "shop.g"),
        triggers_on={"logs.g": "logs.visits", "shop.g": "shop.orders"},
    )
    settings = replace(
        filtered(ignore_db=("logs",)), target=target_settings(apply_mode="sql").target
    )
    (refused,) = (line for line in lines(settings, here, there) if line.id == "triggers-refused")
    assert refused.found.startswith("1 trigger,")
    assert "shop.g" in refused.found
    renamed = replace(settings, filter=filtered(rewrite_db=(("shop", "x"),)).filter)
    (refused,) = (line for line in lines(renamed, here, there) if line.id == "triggers-refused")
    assert "logs.g" in refused.found
    assert "shop.g" not in refused.found
    assert "foreign-keys" in ids(lines(SETTINGS, here, there))
    assert "foreign-keys" not in ids(lines(settings, here, there))


def test_names_of_rules_ignore_case_where_the_target_does() -> None:
    settings = filtered(do_db=("SHOP",))
    assert "filter-matches-nothing" in ids(lines(settings, SOURCE, TARGET))
    folding = target({"lower_case_table_names": "1"})
    assert "filter-matches-nothing" not in ids(lines(settings, SOURCE, folding))


def test_a_partial_revoke_is_found() -> None:
    revoked = (*EVERYTHING, "REVOKE DROP ON `shop`.* FROM `u`@`%`")
    said = list(lines(SETTINGS, SOURCE, target(grants=revoked)))
    (line,) = (line for line in said if line.id == "privileges-missing")
    assert "lacks DROP on shop" in line.found


def ids(said: Iterable[Line]) -> set[str]:
    return {line.id for line in said}


def test_what_the_target_would_not_write_does_not_matter() -> None:
    formats = target({"binlog_format": "STATEMENT"})
    said = lines(target_settings(binary_log=False), SOURCE, formats)
    assert "target-statement-format" not in ids(said)


def test_a_running_daemon_is_no_conflict() -> None:
    running = tables(daemon=12, channel=replace(CHANNEL, in_doubt=(DOUBT,)))
    read = replace(SOURCE, replicas=((4201, DAEMON_UUID),))
    busy = replace(running, server=target(threads_connected=150).server)
    said = list(lines(SETTINGS, read, busy))
    assert [line for line in said if line.level is not Level.OK] == []


@given(st.text(), st.text())
def test_a_line_is_one_line(name: str, reason: str) -> None:
    line = Kind.ACCESS_DENIED.line(server="source", user=name, reason=reason)
    assert line.found.isprintable()
    assert not re.search(r"\s{2}", line.found)


def test_figures_are_short() -> None:
    assert [size(n) for n in (0, 999, 1000, 2**20, 3 * 2**29, 2**40)] == [
        "0 bytes", "999 bytes", "1000 bytes", "1 MiB", "1.5 GiB", "1024 GiB",
    ]  # fmt: skip
    assert [duration(n) for n in (1, 3600, 7200, 10 * 86400)] == [
        "1 s", "3600 s", "2 hours", "10 days",
    ]  # fmt: skip
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"
