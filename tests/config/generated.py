"""Values for every key, made from the model, so that a new key cannot be forgotten."""

from dataclasses import dataclass

from mtsd.config import FIELDS, shown
from mtsd.config.kinds import choices, is_path, is_plain_text, limits

# What cannot be made from a kind: texts of a form, and lists.
_BY_HAND: dict[str, tuple[object, object]] = {
    "source.start": ("earliest", "binlog.000007:4"),
    "status.listen": ("127.0.0.1:9104", "[::1]:9104"),
    "replica.skip_errors": ([1062], [1032, 1146]),
    "replica.bind": ([["a", "b"]], [["c"]]),
    "replica.pin": ([["a", 1]], [["a", 2], ["b", 1]]),
    "replica.weigh": ([["a", 5]], [["b", 2]]),
    "filter.do_db": (["a"], ["b"]),
    "filter.ignore_db": (["a"], ["b"]),
    "filter.do_table": (["a.t"], ["b.t"]),
    "filter.ignore_table": (["a.t"], ["b.t"]),
    "filter.wild_do_table": (["a.t%"], ["b.t%"]),
    "filter.wild_ignore_table": (["a.t%"], ["b.t%"]),
    "filter.rewrite_db": ([["a", "b"]], [["c", "d"]]),
}


@dataclass(frozen=True, slots=True)
class Way:
    """One value of a key: as TOML holds it, and as text outside of TOML."""

    value: object
    toml: str
    text: str


def ways(key: str) -> tuple[Way, Way]:
    """Return two values that a key may have, different ones where there are two."""
    first, second = two_values(key)
    return _way(key, first), _way(key, second)


def _way(key: str, value: object) -> Way:
    return Way(value, shown(value), str(value) if is_plain_text(FIELDS[key]) else shown(value))


def two_values(key: str) -> tuple[object, object]:
    """Return two values of a key that are not the same."""
    field = FIELDS[key]
    if key in _BY_HAND:
        return _BY_HAND[key]
    if words := choices(field):
        return words[0], words[-1]
    if field.annotation is bool:
        return True, False
    if bounds := limits(field):
        return bounds
    if is_path(field):
        return "/one", "/two"
    return "one", "two"
