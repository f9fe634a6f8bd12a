"""How rows are applied: by BINLOG statements or by SQL, as decided from the settings."""

from mtsd.config import Settings


def applies_sql(settings: Settings) -> bool:
    """Return whether rows are applied by SQL statements rather than by BINLOG.

    The server's idempotent mode for BINLOG would hide that a transaction before has failed.
    """
    return settings.target.apply_mode == "sql" or settings.replica.exec_mode == "idempotent"
