"""The servers of a benchmark: a source that is only fast, and targets that are all alike."""

from types import MappingProxyType
from typing import Final

from tests.servers.mysqld import Options, Server

_DEFAULTS: Final[Options] = {
    # A target's first tables are its source's.
    "innodb_file_per_table": "ON",
    # In a smaller one large transactions wait for its room: 100 ms each on few processors.
    "innodb_log_buffer_size": "64M",
    "innodb_use_native_aio": "ON",
}
"""Of a MySQL, where the tests' servers have something else."""

SOURCE: Final[Options] = {
    **_DEFAULTS,
    "innodb_buffer_pool_size": "1G",
    "innodb_redo_log_capacity": "2G",
    "max_connections": 200,
}
"""Not durable: how the backlog is created is not measured."""

TARGET: Final[Options] = {
    **_DEFAULTS,
    "innodb_buffer_pool_size": "1G",
    "innodb_redo_log_capacity": "2G",
    # So is this.
    "innodb_flush_method": "O_DIRECT",
    "performance_schema": "ON",
}
DURABLE: Final[Options] = {"sync_binlog": 1, "innodb_flush_log_at_trx_commit": 1}
NOT_DURABLE: Final[Options] = {"sync_binlog": 0, "innodb_flush_log_at_trx_commit": 2}

MARIADB_SOURCE: Final[Options] = {
    "binlog_format": "ROW",
    "innodb_buffer_pool_size": "1G",
    # Copied into each target.
    "innodb_log_file_size": "96M",
    "max_connections": 200,
}
"""Not durable either. `binlog_format` is MIXED by default."""
_MARIADB_TARGET: Final[Options] = {
    "binlog_format": "ROW",
    "innodb_buffer_pool_size": "1G",
    "innodb_log_file_size": "1G",
    "innodb_flush_method": "O_DIRECT",
    # Otherwise its own replica writes no binlog, and mtsd does.
    "log_slave_updates": "ON",
    "server_id": 2,
    "slave_parallel_mode": "optimistic",
}

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
    "innodb_log_buffer_size",
    "innodb_log_writer_threads",
    "performance_schema",
    "slave_parallel_threads",
    "slave_parallel_mode",
    "log_slave_updates",
    "innodb_log_file_size",
)
"""What a reader needs to know about a target to judge its figures."""


def source(options: Options = MappingProxyType({})) -> Server:
    """Return a source, not started; `options` are added to its own."""
    return Server({**SOURCE, **options})


def target(*, durable: bool, workers: int, options: Options = MappingProxyType({})) -> Server:
    """Return a fresh target, not started.

    Its settings are those of all targets, the native replica's workers, and `options`.
    """
    return Server({**target_options(durable=durable, workers=workers), **options})


def target_options(*, durable: bool, workers: int) -> Options:
    """Return the settings of all targets."""
    durability = DURABLE if durable else NOT_DURABLE
    return {**TARGET, **durability, "replica_parallel_workers": workers}


def mariadb_target_options(*, durable: bool, workers: int) -> Options:
    """Return the settings of all targets that are a MariaDB."""
    durability = DURABLE if durable else NOT_DURABLE
    return {**_MARIADB_TARGET, **durability, "slave_parallel_threads": workers}


def settings(server: Server) -> dict[str, str]:
    """Return those of REPLICA_SETTINGS that the server knows, in their order."""
    known = {str(name): str(value) for name, value in server.sql("SHOW GLOBAL VARIABLES")}
    return {name: known[name] for name in REPLICA_SETTINGS if name in known}
