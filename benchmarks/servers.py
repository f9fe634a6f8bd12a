"""The servers of a benchmark: a source that is only fast, and targets that are all alike."""

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


def source() -> Server:
    """Return a source, not started."""
    return Server(SOURCE)


def target(*, durable: bool, workers: int) -> Server:
    """Return a fresh target, not started; the native replica's workers are its only setting."""
    options = {**TARGET, **(DURABLE if durable else NOT_DURABLE)}
    return Server({**options, "replica_parallel_workers": workers})


def settings(server: Server) -> dict[str, str]:
    """Return those of REPLICA_SETTINGS that the server knows, in their order."""
    known = {str(name): str(value) for name, value in server.sql("SHOW GLOBAL VARIABLES")}
    return {name: known[name] for name in REPLICA_SETTINGS if name in known}
