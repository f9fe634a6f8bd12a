"""SHOW GRANTS is read as the server means it, and --grants prints what the needs say."""

import re
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtsd.config import Settings
from mtsd.model.server import Flavour, ServerVersion
from mtsd.operations.check.grants import statements
from mtsd.operations.check.privileges import (
    BINLOG,
    DEFINERS,
    DEFINITIONS,
    EVIDENCE,
    MIRROR,
    POSITION,
    SESSION,
    SOURCE,
    TARGET,
    HeldPrivileges,
    definitions,
    grant,
    missing,
    missing_on,
    missing_on_all,
    target_needs,
)
from tests.operations.check.good_facts import SETTINGS, filtered, replica, target_settings

NEEDED = (*TARGET, *SESSION, *BINLOG, *DEFINITIONS)
NEWEST = ServerVersion(Flavour.MYSQL, (9, 7, 0))
MARIADB = ServerVersion(Flavour.MARIADB, (11, 8, 0))


def mysql(*number: int) -> ServerVersion:
    major, minor, patch = number
    return ServerVersion(Flavour.MYSQL, (major, minor, patch))


def test_privileges_are_held_where_the_grant_says() -> None:
    held = HeldPrivileges.of([
        "GRANT SELECT, CREATE VIEW ON *.* TO `u`@`%`",
        "GRANT BINLOG_ADMIN,SESSION_VARIABLES_ADMIN ON *.* TO `u`@`%` WITH GRANT OPTION",
        "GRANT INSERT ON `shop%`.* TO `u`@`%`",
        r"GRANT ALL PRIVILEGES ON `my\_db`.* TO `u`@`%`",
        "GRANT UPDATE ON `shop`.`orders` TO `u`@`%`",
        "GRANT SELECT (`a`), DELETE (`b`, `c`) ON `shop`.`orders` TO `u`@`%`",
        "GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `u`@`%`",
        "GRANT `role`@`%` TO `u`@`%`",
        "GRANT PROXY ON ``@`` TO `u`@`%` WITH GRANT OPTION",
    ])  # fmt: skip
    assert held.everywhere == {
        "SELECT", "CREATE VIEW", "BINLOG_ADMIN", "SESSION_VARIABLES_ADMIN", "GRANT OPTION",
    }  # fmt: skip
    assert held.has_on("shop2", "INSERT")
    assert not held.has_on("other", "INSERT")
    assert held.has_on("my_db", "DELETE")
    assert not held.has_on("myxdb", "DELETE")
    assert not held.has_on("shop", "UPDATE")
    assert not held.has_on("shop", "DELETE")


def test_all_privileges_of_an_old_server_are_all() -> None:
    held = HeldPrivileges.of(
        ["GRANT ALL PRIVILEGES ON *.* TO 'u'@'%' IDENTIFIED BY PASSWORD <secret>"]
    )
    assert missing(held, (*SOURCE, *DEFINITIONS), mysql(5, 7, 0)) == []


def test_a_partial_revoke_counts_for_its_database() -> None:
    held = HeldPrivileges.of([
        "GRANT SELECT, INSERT ON *.* TO `u`@`%`", "REVOKE INSERT ON `shop`.* FROM `u`@`%`",
    ])  # fmt: skip
    assert missing_on(held, POSITION[:2], ["shop", "blog"]) == {"shop": ["INSERT"]}


def test_an_older_server_is_asked_for_what_it_has() -> None:
    nothing = HeldPrivileges()
    assert "SET_ANY_DEFINER" in missing(nothing, DEFINERS, mysql(8, 4, 0))
    assert "SET_USER_ID" in missing(nothing, DEFINERS, mysql(8, 0, 30))
    assert missing(nothing, BINLOG, mysql(8, 0, 11)) == ["BINLOG_ADMIN"]
    assert missing(HeldPrivileges({"SUPER"}), (*TARGET[1:], *SESSION, *BINLOG), NEWEST) == []


names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1
)


@given(names.filter(lambda name: not re.search(r"[%_\\]", name)))
def test_what_is_granted_on_a_database_is_held_there(database: str) -> None:
    line = grant(["SELECT", "CREATE VIEW"], "`u`@`%`", database)
    held = HeldPrivileges.of([line])
    assert held.has_on(database, "SELECT")
    assert held.has_on(database, "CREATE VIEW")
    assert not held.has_on(database + "x", "SELECT")


def of_mysql(settings: Settings) -> HeldPrivileges:
    """Return what the target's user holds after the statements that a MySQL runs of them."""
    _, target = "\n".join(statements(settings)).split("\n\n")
    return HeldPrivileges.of(run_by(r"/\*!\d{5} ", target.splitlines()))


def run_by(marked: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the statements of lines that a server runs: those marked for it, and for all."""
    for line in lines:
        plain = re.sub(rf"^{marked}(.*) \*/;$", r"\1;", line)
        if plain[:1] not in {"-", "/"}:
            yield plain.removesuffix(";")


def test_whoever_has_the_printed_grants_lacks_nothing() -> None:
    source = HeldPrivileges.of(line.removesuffix(";") for line in statements(SETTINGS))
    assert missing(source, SOURCE, NEWEST) == []
    target = of_mysql(SETTINGS)
    assert missing(target, NEEDED, NEWEST) == []
    assert missing_on(target, POSITION, ["mtsd"]) == {}
    assert "CREATE USER" not in target.everywhere
    assert not any(target.has_on("mysql", name) for name in POSITION)
    # Their price is too high to be granted unasked.
    assert {*DEFINERS} & {*NEEDED} == set()
    assert "SET_ANY_DEFINER" not in target.everywhere


@pytest.mark.parametrize(
    ("settings", "databases"),
    [
        (filtered(do_db=("shop", "blog")), {"shop", "blog"}),
        (filtered(do_table=("shop.t", "blog.u")), {"shop", "blog"}),
        (filtered(wild_do_table=("shop.%", r"my\_db.t_")), {"shop", "my_db"}),
        (filtered(do_db=("copy",), rewrite_db=(("shop", "copy"),)), {"copy"}),
        (filtered(wild_do_table=("shop%.%",)), None),
        (filtered(ignore_db=("mysql",)), None),
    ],
)
def test_a_filter_that_names_its_databases_confines_the_grants(
    settings: Settings, databases: set[str] | None
) -> None:
    held = of_mysql(settings)
    assert (missing_on_all(held, NEWEST) == []) == (databases is None)
    if databases is not None:
        assert held.databases.keys() == {*databases, "mtsd"}
        assert missing_on(held, definitions(NEWEST), databases) == {}
        assert not held.has_on("other", "INSERT")


def test_a_databases_own_grant_counts_in_place_of_a_patterns() -> None:
    held = HeldPrivileges.of([
        "GRANT SELECT, INSERT ON `%`.* TO `u`@`%`", "GRANT SELECT ON `mysql`.* TO `u`@`%`",
        r"GRANT DELETE ON `my\_%`.* TO `u`@`%`", "GRANT UPDATE ON `m%`.* TO `u`@`%`",
    ])  # fmt: skip
    assert held.has_on_all("INSERT")
    assert (held.has_on("mysql", "INSERT"), held.has_on("shop", "INSERT")) == (False, True)
    assert (held.has_on("my_x", "DELETE"), held.has_on("my_x", "UPDATE")) == (True, False)


def test_a_mariadb_has_privileges_of_its_own() -> None:
    everything = (*SOURCE, *NEEDED, *DEFINERS)
    lacking = missing(HeldPrivileges(), everything, MARIADB)
    assert {"BINLOG MONITOR", "BINLOG REPLAY", "SET USER"} <= set(lacking)
    assert not any("_" in name for name in lacking)
    printed = list(statements(SETTINGS))
    assert all(line.count("BINLOG REPLAY") <= 1 for line in printed)
    held = HeldPrivileges.of(run_by(r"/\*M! ", printed))
    assert missing(held, (*TARGET, *SESSION, *BINLOG), MARIADB) == []
    assert missing_on_all(held, MARIADB) == []
    assert not held.has_on("mysql", "INSERT")
    held = HeldPrivileges.of([
        "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*7B'",
    ])  # fmt: skip
    assert missing(held, SOURCE, MARIADB) == []


def test_a_mariadb_that_applies_rows_as_sql_may_do_without_the_right_to_replay() -> None:
    printed = list(statements(target_settings(apply_mode="sql")))
    (alone,) = [line for line in printed if "BINLOG REPLAY" in line]
    assert alone == "-- GRANT BINLOG REPLAY ON *.* TO 'mtsd'@'%';"
    assert "Its price" in printed[printed.index(alone) - 1]


def test_what_only_other_accounts_definitions_need_is_in_a_group_of_its_own() -> None:
    kept = list(statements(SETTINGS))
    dropped = list(statements(target_settings(definer="current_user")))
    named = re.compile("DEFINER,|DEFINER O|SYSTEM_USER|SET_USER_ID|SET USER")
    apart = [line for line in kept if line not in dropped]
    assert [line for line in kept if named.search(line)] == apart[4:5] + apart[6:]
    assert all(line.startswith("-- ") for line in apart)
    assert not any(named.search(line) for line in dropped)


def test_mirroring_needs_more() -> None:
    mirroring = target_settings(gtid="mirror", binary_log=False)
    mirrored = "\n".join(statements(mirroring))
    assert all(need.anyof[0] in mirrored for need in MIRROR)
    assert any(need in target_needs(mirroring, logs=False) for need in MIRROR)
    by_itself = "\n".join(statements(target_settings(gtid="auto", binary_log=False)))
    assert "SYSTEM_VARIABLES_ADMIN" in by_itself


def test_a_target_without_gtids_is_read_for_evidence() -> None:
    settings = target_settings()
    assert EVIDENCE[0] in target_needs(settings, logs=True, gtids=False)
    assert EVIDENCE[0] not in target_needs(settings, logs=True, gtids=True)
    assert EVIDENCE[0] not in target_needs(settings, logs=False, gtids=False)
    assert "-- GRANT REPLICATION SLAVE ON *.* TO" in "\n".join(statements(settings))


def test_who_holds_up_a_worker_is_named_to_a_user_who_may_ask() -> None:
    asks = ["GRANT PROCESS ON *.* TO 'mtsd'@'%';"]
    asks.append("GRANT SELECT ON `performance_schema`.* TO 'mtsd'@'%';")
    any_time = replica(consistency="any_time")
    assert set(asks) <= set(statements(any_time))
    offered = [line for line in statements(SETTINGS) if line.removeprefix("-- ") in asks]
    assert offered == [f"-- {ask}" for ask in asks]


def test_a_users_name_is_quoted() -> None:
    text = "\n".join(statements(target_settings(user="o'neil\\")))
    assert r"TO 'o''neil\\'@'%';" in text
