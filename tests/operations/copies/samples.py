"""What programs have written, shortened: of MySQL 9.7, MariaDB 10.11 and 11.8, mydumper 0.10.1."""

from typing import Final

from mtsd.model.gtid import GtidSet
from mtsd.model.position import Position
from mtsd.operations.copies.copied import Copied

U: Final = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
V: Final = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
MYSQLDUMP: Final = f"""\
-- MySQL dump 10.13  Distrib 9.7.4, for Linux (x86_64)
--
-- Host: localhost    Database: shop
-- ------------------------------------------------------
-- Server version\t9.7.4
SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;

--
-- GTID state at the beginning of the backup
--

SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '{U}:1-3,
{V}:1-5';

--
-- Position to start replication or point-in-time recovery from
--

-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=811;

--
-- Current Database: `shop`
--

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop`;
"""
MARIADB_DUMP: Final = """\
/*M!999999\\- enable the sandbox mode */
-- MariaDB dump 10.19-11.8.9-MariaDB, for debian-linux-gnu (x86_64)
CHANGE MASTER TO MASTER_USE_GTID=slave_pos;
-- CHANGE MASTER TO MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=772;
-- Current Database: `shop`
"""
MARIADB_DUMP_END: Final = """\
-- Preferably use GTID to start replication from GTID position:

SET GLOBAL gtid_slave_pos='3-29590-3';

-- Dump completed on 2026-11-27  4:18:32
"""
OLD_METADATA: Final = """\
Started dump at: 2026-11-27 04:18:32
SHOW MASTER STATUS:
\tLog: binlog.000001
\tPos: 772
\tGTID:3-29590-3

SHOW SLAVE STATUS:
\tHost: 10.0.0.1
\tLog: elsewhere.000009
\tPos: 4
\tGTID:

Finished dump at: 2026-11-27 04:18:33
"""
METADATA: Final = f"""\
# Started dump at: 2026-05-24 15:57:04
[config]
quote-character = BACKTICK

[source]
# Channel_Name = '' # It can be use to setup replication FOR CHANNEL
# executed_gtid_set = "{V}:1-7"
# SOURCE_LOG_FILE = "replica-bin.000017"
# SOURCE_LOG_POS = 241149225

[replication]
Executed_Gtid_Set = "{V}:1-7,{U}:1-3"
SOURCE_LOG_FILE = "binlog.000001"
SOURCE_LOG_POS = 811
#SOURCE_AUTO_POSITION = {{0|1}}
# Source_UUID = '{U}'
#SOURCE_SSL = {{0|1}}

[`shop`.`orders`]
real_table_name=orders
rows = 2

[`sakila`]
schema_checksum = FDF2173B
# Finished dump at: 2026-05-24 15:57:05
"""
SHELL_DUMP: Final = f"""\
{{"dumper": "mysqlsh Ver 8.4.0", "version": "2.0.1", "origin": "dumpSchemas",
"schemas": ["shop"], "server": "db1", "serverVersion": "8.4.0", "consistent": true,
"binlogFile": "binlog.000042", "binlogPosition": 157,
"gtidExecuted": "{U}:1-100,\\n{V}:1-5", "gtidExecutedInconsistent": false}}
"""
REPLICA: Final = f"""\
*************************** 1. row ***************************
             Replica_IO_State:
                  Source_Host: db1
                  Source_User: repl
                  Source_Port: 3306
              Source_Log_File: binlog.000004
          Read_Source_Log_Pos: 900
        Relay_Source_Log_File: binlog.000003
           Replica_IO_Running: No
          Replica_SQL_Running: No
          Exec_Source_Log_Pos: 700
             Source_Server_Id: 7
                  Source_UUID: {U}
           Retrieved_Gtid_Set: {U}:1-9
            Executed_Gtid_Set: {U}:1-7,
{V}:1-2
                Auto_Position: 1
"""
PARTS: Final[list[tuple[str, str, Copied]]] = [
    (
        MYSQLDUMP,
        "",
        Copied(
            "dump",
            Position("binlog.000001", 811),
            GtidSet.parse(f"{U}:1-3,{V}:1-5"),
            databases=frozenset({"shop"}),
        ),
    ),
    (
        MYSQLDUMP.replace(
            f"SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '{U}:1-3,\n{V}:1-5';",
            f"/* SET @@GLOBAL.GTID_PURGED='+{U}:1-3';*/",
        ),
        "",
        Copied(
            "dump",
            Position("binlog.000001", 811),
            GtidSet.parse(f"{U}:1-3"),
            databases=frozenset({"shop"}),
        ),
    ),
    (
        (
            "CHANGE REPLICATION SOURCE 'other' TO SOURCE_HOST='db1', SOURCE_PORT=3306, "
            "SOURCE_LOG_FILE='binlog.000007', SOURCE_LOG_POS=4;\n"
        ),
        "",
        Copied("dump", Position("binlog.000007", 4)),
    ),
    (
        MARIADB_DUMP,
        MARIADB_DUMP_END,
        Copied(
            "dump",
            Position("binlog.000001", 772),
            GtidSet.parse("3-29590-3"),
            databases=frozenset({"shop"}),
        ),
    ),
    # xtrabackup_slave_info
    (
        f"SET GLOBAL gtid_purged='{U}:1-3';\nCHANGE MASTER TO MASTER_AUTO_POSITION=1;\n",
        "",
        Copied("dump", None, GtidSet.parse(f"{U}:1-3")),
    ),
    (
        OLD_METADATA,
        "",
        Copied("mydumper's copy", Position("binlog.000001", 772), GtidSet.parse("3-29590-3")),
    ),
    (
        METADATA,
        "",
        Copied(
            "mydumper's copy",
            Position("replica-bin.000017", 241149225),
            GtidSet.parse(f"{V}:1-7"),
            databases=frozenset({"shop", "sakila"}),
        ),
    ),
    (
        SHELL_DUMP,
        "",
        Copied(
            "MySQL Shell's dump",
            Position("binlog.000042", 157),
            GtidSet.parse(f"{U}:1-100,{V}:1-5"),
            databases=frozenset({"shop"}),
        ),
    ),
    (
        "binlog.000001\t772\t3-29590-3\n",
        "",
        Copied("backup", Position("binlog.000001", 772), GtidSet.parse("3-29590-3")),
    ),
    (
        f"mysql-bin.000003\t1404\t{U}:1-3,\n{V}:1-5\n",
        "",
        Copied("backup", Position("mysql-bin.000003", 1404), GtidSet.parse(f"{U}:1-3,{V}:1-5")),
    ),
    ("mysql-bin.000003\t1404\n", "", Copied("backup", Position("mysql-bin.000003", 1404))),
    (
        REPLICA,
        "",
        Copied(
            "the server's own replica",
            Position("binlog.000003", 700),
            GtidSet.parse(f"{U}:1-7,{V}:1-2"),
            U,
            of_replica=True,
        ),
    ),
]
"""The beginning and the end of a file, and what it says first."""
