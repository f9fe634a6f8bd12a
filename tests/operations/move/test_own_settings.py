"""What a server's own replica is set to and mtsd's configuration, one translated to the other."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from mtsd.config import FilterSettings, Settings
from mtsd.config.settings import ReplicaSettings, SourceSettings, TargetSettings
from mtsd.filter.rules import Rules
from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.move.own_settings import Difference, differences, fragment, own_settings, told
from mtsd.operations.move.own_statements import (
    GoesOn,
    ReplicaAccount,
    configuring,
    only_here,
)
from mtsd.wire.exchange import Value
from mtsd.wire.replica_words import MARIADB_REPLICA, MYSQL_REPLICA, MYSQL_SLAVE, ReplicaWords

PLAIN: dict[str, Value] = {"Source_SSL_Allowed": "No", "SQL_Delay": 0, "Until_Condition": "None"}
ACCOUNT = ReplicaAccount("db1", 3306, "repl", "it's secret")
BY_GTID = GoesOn(GtidSet(), Position("", 0))
BY_FILE = GoesOn(None, Position("binlog.000042", 157))
SETTINGS = Settings(
    source=SourceSettings(tls="verify_identity", tls_ca=Path("/ca.pem"), password=SecretStr("x")),
    replica=ReplicaSettings(delay=60),
    filter=FilterSettings(
        do_db=("shop", "b`og"), wild_ignore_table=("shop.t%",), rewrite_db=(("old", "new"),)
    ),
)


def test_nothing_is_told_of_what_is_not_set() -> None:
    own = own_settings(PLAIN)
    assert fragment(own) == []
    assert differences(own, Settings(), encrypted=False) == []


@pytest.mark.parametrize("renamed", ["(old,new),(a,b)", "old->new,a->b"], ids=["MySQL", "MariaDB"])
def test_filters_delay_and_tls_become_keys(renamed: str) -> None:
    own = own_settings(
        {
            "Master_SSL_Allowed": "Yes",
            "Master_SSL_CA_File": "/ca.pem",
            "Replicate_Do_DB": "shop, blog",
            "Replicate_Wild_Ignore_Table": "shop.t%",
            "Replicate_Rewrite_DB": renamed,
            "SQL_Delay": 60,
        }
    )
    assert own.rules == Rules(
        do_db=("shop", "blog"),
        wild_ignore_table=("shop.t%",),
        rewrite_db=(("old", "new"), ("a", "b")),
    )
    assert fragment(own) == [
        "[source]",
        'tls = "verify_ca"',
        'tls_ca = "/ca.pem"   # that file, on this machine',
        "[replica]",
        "delay = 60",
        "[filter]",
        'do_db = ["shop", "blog"]',
        'wild_ignore_table = ["shop.t%"]',
        'rewrite_db = [["old", "new"], ["a", "b"]]',
    ]
    assert [each.name for each in differences(own, Settings(), encrypted=True)] == [
        "filter", "delay", "tls"
    ]  # fmt: skip
    same = Settings(
        source=SourceSettings(tls="verify_ca"),
        replica=ReplicaSettings(delay=60),
        filter=FilterSettings(
            # In another order it is the same.
            do_db=("blog", "shop"),
            wild_ignore_table=("shop.t%",),
            rewrite_db=(("a", "b"), ("old", "new")),
        ),
    )
    assert differences(own, same, encrypted=True) == []


def test_encryption_that_is_only_preferred_is_enough_where_it_is_there() -> None:
    own = own_settings({**PLAIN, "Source_SSL_Allowed": "Yes"})
    assert differences(own, Settings(), encrypted=True) == []
    assert [each.name for each in differences(own, Settings(), encrypted=False)] == ["tls"]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("Replicate_Ignore_Server_Ids", "(7)"),
        ("Replicate_Do_Domain_Ids", "(1,2)"),
        ("Require_row_format", 1),
        ("Assign_gtids_to_anonymous_transactions_type", "LOCAL"),
        ("Privilege_checks_username", "app"),
        ("Until_Condition", "Source"),
        ("Skip_Counter", 3),
    ],
)
def test_what_mtsd_has_not_is_named(column: str, value: Value) -> None:
    own = own_settings(PLAIN, {column: value})
    (found,) = differences(own, Settings(), encrypted=False)
    assert found.name == column.lower()
    assert f"--accept {column.lower()}" in str(found)
    nothing = own_settings(PLAIN, {column: "()" if "_Ids" in column else None})
    assert differences(nothing, Settings(), encrypted=False) == []


def shown(words: ReplicaWords, settings: Settings, place: GoesOn, channel: str = "") -> list[str]:
    found = configuring(words, channel, settings, ACCOUNT, place, encrypted=True)
    assert all("secret" not in statement.shown for statement in found)
    assert "SOURCE_PASSWORD='it''s secret'" in found[0].sql.replace("MASTER", "SOURCE")
    return [statement.shown for statement in found]


def test_the_configuration_becomes_statements_of_a_mysql() -> None:
    assert shown(MYSQL_REPLICA, SETTINGS, BY_GTID, "east") == [
        (
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='db1', SOURCE_PORT=3306, SOURCE_USER='repl',"
            " SOURCE_PASSWORD='…', SOURCE_SSL=1, SOURCE_SSL_VERIFY_SERVER_CERT=1,"
            " SOURCE_SSL_CA='/ca.pem', SOURCE_DELAY=60, SOURCE_AUTO_POSITION=1 FOR CHANNEL 'east'"
        ),
        (
            "CHANGE REPLICATION FILTER REPLICATE_DO_DB = (`shop`, `b``og`),"
            " REPLICATE_WILD_IGNORE_TABLE = ('shop.t%'), REPLICATE_REWRITE_DB = ((`old`, `new`))"
            " FOR CHANNEL 'east'"
        ),
    ]
    (old,) = shown(MYSQL_SLAVE, Settings(), BY_FILE)
    assert old.startswith("CHANGE MASTER TO MASTER_HOST='db1'")
    assert "MASTER_AUTO_POSITION=0, MASTER_LOG_FILE='binlog.000042', MASTER_LOG_POS=157" in old


def test_the_configuration_becomes_statements_of_a_mariadb() -> None:
    change, *filters = shown(MARIADB_REPLICA, SETTINGS, BY_GTID, "east")
    assert change.startswith("CHANGE MASTER 'east' TO MASTER_HOST='db1'")
    assert change.endswith("MASTER_USE_GTID=slave_pos")
    assert filters == [
        "SET GLOBAL east.replicate_do_db = 'shop,b`og'",
        "SET GLOBAL east.replicate_wild_ignore_table = 'shop.t%'",
        "SET GLOBAL east.replicate_rewrite_db = 'old->new'",
    ]


def test_a_name_that_is_accepted_in_vain_is_told() -> None:
    delay = Difference("delay", "it is 7 s behind")
    assert [*told([delay], {"delay", "dealy"})] == [
        f"differs: {delay}",
        "--accept dealy: nothing here has that name",
    ]


def test_what_the_own_replica_has_not_is_named() -> None:
    assert only_here(Settings()) == []
    settings = Settings(
        replica=ReplicaSettings(
            consistency="eventual", newer_row_column="changed", skip_errors=(1062,)
        ),
        target=TargetSettings(definer="current_user", binary_log=False),
    )
    assert [each.name for each in only_here(settings)] == [
        "newer_row_column", "exec_mode", "skip_errors", "definer", "binary_log"
    ]  # fmt: skip
    idempotent = replace(settings.replica, consistency="partition", exec_mode="idempotent")
    assert "exec_mode" in {each.name for each in only_here(replace(settings, replica=idempotent))}
