"""The servers of a benchmark: a source that is only fast, and targets that are all alike."""

from types import MappingProxyType
from typing import Final

from tests.servers.mysqld import Options, Server

SOURCE: Final[Options] = {
    "innodb_buffer_pool_size": "1G",
    "innodb_redo_log_capacity": "2G",
    "max_connections": 200,
}
"""Not durable: how the backlog is created is not measured."""

TARGET: Final[Options] = {
    "innodb_buffer_pool_size": "1G",
    "innodb_redo_log_capacity": "2G",
    # The default: the tests' servers run without it.
    "innodb_flush_method": "O_DIRECT",
    "performance_schema": "ON",
}
DURABLE: Final[Options] = {"sync_binlog": 1, "innodb_flush_log_at_trx_commit": 1}
NOT_DURABLE: Final[Options] = {"sync_binlog": 0, "innodb_flush_log_at_trx_commit": 2}

REPLICA_SETTINGS: Final = (
    "version",
    "replica_parallel_workers",
    "replica_parallel_type",
    "replica_preserve_commit_order",
    "replica_pending_jobs_size_max",
    "replica_checkpoint_group",
    "replica_checkpoint_period",
    "replica_transaction_retries",
    "sync_relay_log",
    "sync_source_info",
    "sync_relay_log_info",
    "relay_log_recovery",
    "log_replica_updates",
    "log_bin",
    "gtid_mode",
    "binlog_row_image",
    "binlog_format",
    "binlog_order_commits",
    "sync_binlog",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_buffer_pool_size",
    "innodb_redo_log_capacity",
    "performance_schema",
)
"""What a reader needs to know about a target to judge its figures."""


def source(options: Options = MappingProxyType({})) -> Server:
    """Return a source, not started; `options` are added to its own."""
    return Server({**SOURCE, **options})


def target(*, durable: bool, workers: int, options: Options = MappingProxyType({})) -> Server:
    """Return a fresh target, not started.

    Its settings are those of all targets, the native replica's workers, and `options`.
    """
    durability = DURABLE if durable else NOT_DURABLE
    return Server({**TARGET, **durability, "replica_parallel_workers": workers, **options})


def settings(server: Server) -> dict[str, str]:
    """Return those of REPLICA_SETTINGS that the server knows, in their order."""
    known = {str(name): str(value) for name, value in server.sql("SHOW GLOBAL VARIABLES")}
    return {name: known[name] for name in REPLICA_SETTINGS if name in known}
