"""What each key must refuse, and the kind of each."""

from mtsd.config import FIELDS
from mtsd.config.kinds import choices, is_plain_text

LONG = "x" * 300
# The keys that hold free text or lists, with texts and lists that they must refuse.
WRONG_VALUES: dict[str, tuple[str, ...]] = {
    **{
        f"{section}.{name}": values
        for section in ("source", "target")
        for name, values in {
            "host": ('"two words"', '"db/1"', f'"{LONG}"'),
            "user": ('""', f'"{LONG}"'),
            "unix_socket": (f'"/{LONG}"', r'"a\u0000b"'),
            "password_file": (r'"a\u0000b"',),
            "tls_ca": (r'"a\u0000b"',),
            "tls_cert": (r'"a\u0000b"',),
            "tls_key": (r'"a\u0000b"',),
            "server_public_key": (r'"a\u0000b"',),
        }.items()
    },
    "source.start": ('"Earliest"', '"binlog.000001"', '"binlog.1:3"', '"gtid:"', '"gtid:x:1"'),
    "target.schema": ('""', '"a-b"', '"a`b"', '"é"', f'"{"x" * 65}"', '"mysql"', r'"a\n"'),
    "replica.newer_row_column": ("5", f'"{"x" * 65}"'),
    "replica.channel": (f'"{"x" * 49}"', '"a b"', '"it\'s"', r'"a\\b"', '"a`b"', r'"\""', '"é"'),
    "replica.skip_errors": ("[0]", "[65536]", "[1062, 1062]"),
    "replica.bind": ("[[]]", '[["a"], ["b", "a"]]', '[["a", "a"]]', '[[""]]', '["a"]'),
    "replica.pin": ('[["a"]]', '[["a", 0]]', '[["a", "1"]]', '[["a", 1], ["a", 2]]', '["a", 1]'),
    "replica.weigh": ('[["a", 0]]', '[["a", 1001]]', '[["", 2]]', '[["a", 2], ["a", 2]]'),
    "filter.do_db": ('[""]', f'["{"x" * 65}"]'),
    "filter.ignore_db": ('[""]', f'["{"x" * 65}"]'),
    "filter.do_table": ('["t"]', '["db."]', '[".t"]'),
    "filter.ignore_table": ('["t"]', '["db."]', '[".t"]'),
    "filter.wild_do_table": ('["t%"]', '["db."]', '[".t"]'),
    "filter.wild_ignore_table": ('["t%"]', '["db."]', '[".t"]'),
    "filter.rewrite_db": (
        '[["a", "b"], ["a", "c"]]',
        '[["a"]]',
        '[["a", "b", "c"]]',
        '[["a", ""]]',
        '["ab"]',
    ),
    "status.socket": (f'"/{LONG}"',),
    "status.listen": ('"localhost"', '"9104"', '"a:b"', '"a b:1"', '"a:0"', '"a:65536"'),
}
NUMBERS = [key for key, field in FIELDS.items() if field.annotation in (int, float)]
WORDS = [key for key, field in FIELDS.items() if choices(field)]


def kind_of(key: str) -> type:
    annotation = FIELDS[key].annotation
    if annotation in (bool, int, float):
        assert isinstance(annotation, type)
        return annotation
    return str if is_plain_text(FIELDS[key]) else tuple
