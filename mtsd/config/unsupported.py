"""The one list of what the settings can express but this version does not do yet."""

from collections.abc import Mapping
from types import MappingProxyType

SUPPORTED: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "source.semi_sync": ("off",),
    }
)
"""The only values, as TOML represents them, that may be given for a key until the rest is
implemented. A key that is not here is supported in full."""
