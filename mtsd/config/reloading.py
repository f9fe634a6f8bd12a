"""What a running daemon does with a configuration that it has reloaded: decided key by key."""

from dataclasses import dataclass, replace

from mtsd.config.settings import FIELDS, SECTIONS, Settings

APPLIED = frozenset({
    "replica.batch_groups",
    "replica.batch_bytes",
    "replica.pending_jobs_size_max",
    "replica.checkpoint_group",
    "replica.checkpoint_period",
    "replica.transaction_retries",
    "replica.skip_errors",
    "replica.stop_timeout",
    "replica.delay",
    "replica.bind",
    "replica.pin",
    "replica.weigh",
    "log.level",
    "log.format",
    "log.summary_period",
})  # fmt: skip
"""Keys that take effect immediately."""

BESIDE_THE_WORKERS = frozenset({"replica.bind", "replica.pin", "replica.weigh"})
OF_THE_WORKERS = frozenset({
    "replica.parallel_type", "replica.parallel_workers", "replica.consistency",
})  # fmt: skip
"""As long as a change of these needs a restart, what fits to them only takes effect with it."""

FOR_NEXT_CONNECTION = frozenset(
    f"{section}.{name}"
    for section in ("source", "target")
    for name in (
        "user", "password", "password_file", "tls", "tls_ca", "tls_cert", "tls_key",
        "server_public_key", "get_public_key", "clear_password", "connect_timeout",
    )
)  # fmt: skip
"""Keys that take effect with the next connection to the server; open connections stay."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The settings to continue with, and the paths of the changed keys, by their effect."""

    settings: Settings
    """The previous settings with those changes that can be made while running."""
    applied: tuple[str, ...]
    for_next_connection: tuple[str, ...]
    need_restart: tuple[str, ...]
    """Changed in the configuration, but not in `settings`."""


def reloaded(in_force: Settings, read: Settings) -> Reloaded:
    """Adopt from the settings `read` what can change while running."""
    now, wanted = _values(in_force), _values(read)
    changed = [key for key in FIELDS if now[key] != wanted[key]]
    late = BESIDE_THE_WORKERS if OF_THE_WORKERS.intersection(changed) else frozenset()
    takes = [key for key in changed if key in (APPLIED - late) | FOR_NEXT_CONNECTION]
    sections = {section: getattr(in_force, section) for section in SECTIONS}
    for key in takes:
        section, _, name = key.partition(".")
        sections[section] = replace(sections[section], **{name: wanted[key]})
    return Reloaded(
        Settings(**sections),
        tuple(key for key in takes if key in APPLIED),
        tuple(key for key in takes if key in FOR_NEXT_CONNECTION),
        tuple(key for key in changed if key not in takes),
    )


def _values(settings: Settings) -> dict[str, object]:
    """Return every key's raw value, including secrets: nothing of it may be displayed."""
    values: dict[str, object] = {}
    for key in FIELDS:
        section, _, name = key.partition(".")
        values[key] = getattr(getattr(settings, section), name)
    return values
