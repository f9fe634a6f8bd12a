"""Whose a definition is: on the target the same account's as on the source, whoever applies it."""

from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from tests.fix_daemon import replicated, stopped
from tests.fix_families import families
from tests.servers.mysqld import Options, Server

pytestmark = pytest.mark.servers

PASSWORD = "of_maker"
TRUST: Options = {"log_bin_trust_function_creators": 1}
ACCOUNTS = (
    f"CREATE USER maker@'%' IDENTIFIED BY '{PASSWORD}';"
    "GRANT ALL ON *.* TO maker@'%' WITH GRANT OPTION; CREATE USER another@localhost"
)
BY_ITSELF = (
    "CREATE TABLE t (id INT PRIMARY KEY, who VARCHAR(99))",
    "CREATE VIEW v AS SELECT id FROM t",
    "CREATE PROCEDURE p() INSERT INTO t VALUES (1, CURRENT_USER())",
    "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.id = NEW.id + 10",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t",
)
IN_WORDS = (
    "CREATE DEFINER = CURRENT_USER VIEW v2 AS SELECT id FROM t",
    "CREATE DEFINER = CURRENT_USER() SQL SECURITY INVOKER VIEW v3 AS SELECT id FROM t",
    "CREATE DEFINER = CURRENT_USER PROCEDURE p2() SQL SECURITY INVOKER SELECT 1",
    "CREATE DEFINER = CURRENT_USER() FUNCTION f2() RETURNS INT DETERMINISTIC RETURN 2",
    "CREATE DEFINER = CURRENT_USER TRIGGER g2 AFTER INSERT ON t FOR EACH ROW SET @a = 1",
    "CREATE DEFINER = CURRENT_USER() EVENT e2 ON SCHEDULE EVERY 1 DAY DO SELECT 1",
)
CHANGED = (
    "CREATE OR REPLACE VIEW v2 AS SELECT who FROM t",
    "ALTER VIEW v3 AS SELECT who FROM t",
    "ALTER DEFINER = CURRENT_USER VIEW of_another AS SELECT who FROM t",
    "ALTER DEFINER = CURRENT_USER EVENT of_another COMMENT 'mine'",
)
OF_ANOTHER = (
    "CREATE DEFINER = another@localhost VIEW of_another AS SELECT id FROM t",
    "CREATE DEFINER = another@localhost EVENT of_another ON SCHEDULE EVERY 1 DAY DO SELECT 1",
)
AGAIN = (
    "CREATE OR REPLACE DEFINER = another@localhost VIEW v AS SELECT who FROM t",
    "ALTER ALGORITHM = MERGE DEFINER = another@localhost SQL SECURITY INVOKER VIEW v2 AS SELECT 1",
    "ALTER VIEW v3 AS SELECT id FROM t",
    "DROP PROCEDURE p", "CREATE PROCEDURE p() SELECT 'DEFINER = another@localhost'",
    "DROP FUNCTION f",
    "CREATE DEFINER = another@localhost FUNCTION f() RETURNS INT DETERMINISTIC RETURN 3",
    "DROP TRIGGER g", "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.id = 5",
    "ALTER EVENT e COMMENT 'by its name only'",
    "ALTER DEFINER = another@localhost EVENT e2 COMMENT 'another'",
)  # fmt: skip
AGAIN_ON_MARIADB = (
    """CREATE OR REPLACE DEFINER = another@localhost AGGREGATE FUNCTION total(x INT) RETURNS INT
    DETERMINISTIC BEGIN DECLARE n INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN n;
    LOOP FETCH GROUP NEXT ROW; SET n = n + x; END LOOP; END""",
    "SET sql_mode = ORACLE",
    "CREATE DEFINER = another@localhost PACKAGE q AS PROCEDURE r(); END",
    """CREATE OR REPLACE DEFINER = another@localhost PACKAGE BODY q AS PROCEDURE r() AS BEGIN
    SELECT 1; END; END""",
)
DEFINERS = (
    "SELECT 'view', table_name, definer, security_type FROM information_schema.views"
    " WHERE table_schema = 'd'"
    " UNION SELECT 'routine', routine_name, definer, security_type"
    " FROM information_schema.routines WHERE routine_schema = 'd'"
    " UNION SELECT 'trigger', trigger_name, definer, '' FROM information_schema.triggers"
    " WHERE trigger_schema = 'd'"
    " UNION SELECT 'event', event_name, definer, '' FROM information_schema.events"
    " WHERE event_schema = 'd' ORDER BY 1, 2"
)


def run(server: Server, *statements: str) -> None:
    """Run statements as maker, who is not the user that mtsd applies them as."""
    with (
        closing(
            pymysql.connect(
                unix_socket=str(server.socket), user="maker", password=PASSWORD, database="d",
                autocommit=True, ssl_disabled=True,
            )
        ) as client,
        client.cursor() as cursor,
    ):  # fmt: skip
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("9.7", "9.7"),
        ("11.8", "11.8"),
        ("9.7", "11.8"),
        pytest.param("11.8", "9.7", marks=pytest.mark.long),
    ],
)
def test_of_the_same_account(source: str, target: str, tmp_path: Path) -> None:
    with families(source, target, TRUST) as pair:
        pair.target.sql("SET GLOBAL log_bin_trust_function_creators = 1")
        for server in (pair.source, pair.target):
            server.sql(f"SET sql_log_bin = 0; {ACCOUNTS}")
        pair.source.sql("CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        run(pair.source, *BY_ITSELF, *OF_ANOTHER, *IN_WORDS, *CHANGED)
        replicated(pair, tmp_path)
        ours = pair.source.sql(DEFINERS)
        assert len(ours) == len((*BY_ITSELF, *OF_ANOTHER, *IN_WORDS)) - 1
        assert {definer for _, _, definer, _ in ours} == {"maker@%"}
        assert pair.target.sql(DEFINERS) == ours

        # Made again, each of them belongs to whom mtsd applies it as; others do not change.
        of_mariadb = source == target == "11.8"
        names = ["e", "e2", "f", "g", "p", "v", "v2", "v3"] + ["q", "total"] * of_mariadb
        run(pair.source, *AGAIN, *(AGAIN_ON_MARIADB if of_mariadb else ()))
        replicated(pair, tmp_path, {"target.definer": "current_user"})
        theirs = pair.target.sql(DEFINERS)
        assert sorted(name for _, name, of, _ in theirs if of[:5] == "root@") == sorted(names)
        security = {(kind, name): way for kind, name, _, way in pair.source.sql(DEFINERS)}
        assert {(kind, name): way for kind, name, _, way in theirs} == security


def test_a_role_of_mariadb_that_another_account_administers(tmp_path: Path) -> None:
    """The target lets only its administrators grant it; a server's own replica is not asked."""
    with families("11.8", "11.8") as pair:
        pair.source.sql(f"CREATE DATABASE d; {ACCOUNTS}")
        run(pair.source, "CREATE ROLE r WITH ADMIN CURRENT_USER", "GRANT r TO another@localhost")
        said = stopped(pair, tmp_path)
        assert "error 1698" in said
        assert "GRANT r TO another@localhost" in said
        run(pair.target, "SET sql_log_bin = 0", "GRANT r TO root@localhost WITH ADMIN OPTION")
        replicated(pair, tmp_path)
        roles = "SELECT user, host, admin_option FROM mysql.roles_mapping WHERE user <> 'root'"
        assert pair.source.sql(roles) == pair.target.sql(roles)


def test_the_role_of_a_session_of_mariadb(tmp_path: Path) -> None:
    with families("11.8", "11.8") as pair:
        for server in (pair.source, pair.target):
            server.sql(
                f"SET sql_log_bin = 0; {ACCOUNTS}; CREATE ROLE r WITH ADMIN root@localhost;"
                "GRANT ALL ON *.* TO r WITH GRANT OPTION; GRANT r TO maker@'%' WITH ADMIN OPTION"
            )
        pair.source.sql("CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        run(
            pair.source,
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
            "SET ROLE r",
            "GRANT SELECT ON d.* TO CURRENT_ROLE",
            "CREATE ROLE r2 WITH ADMIN CURRENT_ROLE",
            "ALTER DEFINER=CURRENT_ROLE EVENT e COMMENT 'x'",
        )
        replicated(pair, tmp_path)
        for asked in (
            DEFINERS,
            "SELECT user, host, role FROM mysql.roles_mapping WHERE role = 'r2' AND user <> 'root'",
            "SHOW GRANTS FOR r",
        ):
            assert pair.target.sql(asked) == pair.source.sql(asked)
        assert [definer for _, _, definer, _ in pair.target.sql(DEFINERS)] == ["r@"]
