"""Pairs of servers of two families, and of MariaDB alone."""

from tests.servers.mariadb import provide_mariadb
from tests.servers.mysqld import NO_GTIDS
from tests.servers.pair import Pair
from tests.servers.provision import Installation, Options, provide

OPTIONS: Options = {"local_infile": 1, "log_bin_trust_function_creators": 1, "event_scheduler": 0}
"""What statements need of both servers that are to run them."""


def installed(series: str) -> Installation:
    """Return the MySQL or the MariaDB of a series, as "9.7" or "11.8"."""
    return provide() if series == "9.7" else provide_mariadb(series)


def families(source: str, target: str, options: Options | None = None) -> Pair:
    """Return a source with server_id 1, with these options, and a target with server_id 2."""
    return Pair(
        {"server_id": 1, "binlog_format": "ROW", **(options or {})},
        {"server_id": 2},
        installation=installed(source),
        target_installation=installed(target),
    )


def mariadbs(
    source: str = "10.11",
    target: str = "",
    *,
    options: Options | None = None,
    target_options: Options | None = None,
) -> Pair:
    """Return a source with server_id 1 and a target with server_id 2, of these series."""
    return Pair(
        {"server_id": 1, "binlog_format": "ROW", **(options or {})},
        {"server_id": 2, **(target_options or {})},
        installation=provide_mariadb(source),
        target_installation=provide_mariadb(target or source),
    )


def options_of(series: str) -> Options:
    return {**OPTIONS, **(NO_GTIDS if series == "9.7" else {})}


def pair_of(source: str, target: str, binlog_format: str = "STATEMENT") -> Pair:
    """Return two servers for statements: with files of the client, and without GTIDs on MySQL."""
    return Pair(
        {**options_of(source), "server_id": 1, "binlog_format": binlog_format},
        {**options_of(target), "server_id": 2},
        installation=installed(source),
        target_installation=installed(target),
    )
