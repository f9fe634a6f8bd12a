"""What SHOW CREATE TABLE says, as MySQL 9.7 and MariaDB 11.8 show it."""

from dataclasses import replace

from mtsd.apply.tables.facts import ColumnFacts, TableFacts
from mtsd.apply.tables.shown_table import ShownTables, shown_table

MYSQL = """CREATE TABLE `a``b` (
  `my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */,
  `a-b` int NOT NULL DEFAULT ((1 + 2)) COMMENT 'it''s (a, `DEFAULT` \\\\ ENGINE=x',
  `e` enum('(','a,b','''') DEFAULT '(',
  `bits` bit(3) DEFAULT b'1',
  `made` datetime DEFAULT CURRENT_TIMESTAMP,
  `changed` timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  `late` varchar(60) CHARACTER SET latin1 GENERATED ALWAYS AS (concat(`e`,_utf8mb4')')) VIRTUAL,
  `early` int GENERATED ALWAYS AS ((`a-b` + 1)) STORED NOT NULL,
  PRIMARY KEY (`my_row_id`),
  UNIQUE KEY `k (1` (`a-b`,`late`(10)),
  KEY `f` (((`a-b` * 2)),`e`,(lower(`e`))),
  FULLTEXT KEY `t` (`late`),
  CONSTRAINT `c_1` CHECK ((`a-b` < 10)) /*!80016 NOT ENFORCED */,
  CONSTRAINT `f_1` FOREIGN KEY (`e`) REFERENCES `p` (`e`) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='ENGINE=MyISAM'
/*!50100 PARTITION BY RANGE ((`a-b` - 1))
SUBPARTITION BY HASH (`bits`)
(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB) */"""
MARIADB = """CREATE TABLE `t` (
  `a` int(11) DEFAULT nextval(`d`.`s`) CHECK (`a` > 0),
  `d` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  `b` int(11) GENERATED ALWAYS AS (`a` - 1) STORED,
  `s` timestamp(6) GENERATED ALWAYS AS ROW START INVISIBLE,
  `e` timestamp(6) GENERATED ALWAYS AS ROW END,
  `j` longtext DEFAULT NULL CHECK (json_valid(`j`)),
  UNIQUE KEY `a` (`a`,`e`),
  PERIOD FOR SYSTEM_TIME (`s`, `e`),
  CONSTRAINT `more` CHECK (`a` < 9)
) ENGINE=Aria DEFAULT CHARSET=utf8 WITH SYSTEM VERSIONING"""


def test_a_table_of_mysql() -> None:
    assert shown_table(("d", "a`b"), MYSQL) == TableFacts(
        ("d", "a`b"),
        "innodb",
        (
            ColumnFacts("my_row_id", "bigint", invisible=True, unsigned=True),
            ColumnFacts("a-b", "int", computes_default=True),
            ColumnFacts("e", "enum"),
            ColumnFacts("bits", "bit"),
            ColumnFacts("made", "datetime", computes_default=True),
            ColumnFacts("changed", "timestamp"),
            ColumnFacts("late", "varchar", "(concat(`e`,_utf8mb4')'))", character_set="latin1"),
            ColumnFacts("early", "int", "((`a-b` + 1))", stored=True),
        ),
        has_primary_key=True,
        checks=("((`a-b` < 10))",),
        key_parts=("((`a-b` * 2))", "(lower(`e`))"),
        partitioning=("((`a-b` - 1))", "(`bits`)"),
        keyed=frozenset({"my_row_id", "a-b", "late", "e"}),
        has_foreign_key=True,
    )


def test_a_table_of_mariadb() -> None:
    assert shown_table(("d", "t"), MARIADB) == TableFacts(
        ("d", "t"),
        "aria",
        (
            ColumnFacts("a", "int", computes_default=True),
            ColumnFacts("d", "timestamp"),
            ColumnFacts("b", "int", "(`a` - 1)", stored=True),
            ColumnFacts("s", "timestamp", invisible=True),
            ColumnFacts("e", "timestamp"),
            ColumnFacts("j", "longtext", character_set="utf8mb3"),
        ),
        checks=("(`a` > 0)", "(json_valid(`j`))", "(`a` < 9)"),
        versioned=True,
        keyed=frozenset({"a", "e"}),
    )


def test_what_is_no_table() -> None:
    for shown in (
        "CREATE ALGORITHM=UNDEFINED VIEW `v` AS select (1)",
        "CREATE TEMPORARY TABLE `t` (",
    ):
        assert shown_table(("d", "t"), shown) is None


def test_a_text_is_read_when_it_is_another_one() -> None:
    tables = ShownTables(most=2)
    text = MARIADB.replace("=Aria", "=Aria AUTO_INCREMENT=7")
    first = tables.of(("d", "t"), text)
    assert first is not None
    assert replace(first, definition=b"") == shown_table(("d", "t"), MARIADB)
    assert tables.of(("d", "t"), text.replace("=7", "=18446744073709551615")) is first
    other = tables.of(("d", "t"), MARIADB.replace("Aria", "InnoDB"))
    assert other is not None
    assert other.engine == "innodb"
    assert other.definition != first.definition
    assert tables.of(("d", "t"), MARIADB) == first
    for name in ("u", "v"):
        assert tables.of(("d", name), "CREATE VIEW v AS SELECT 1") is None
