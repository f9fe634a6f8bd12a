"""No secret passes, and the rest stays readable."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.operations.support.redaction import Redaction


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("mysql://me:pass@db1:3306/shop", "mysql://(hidden)@db1:3306/shop"),
        ('{"password": "abc d", "a": 1}', '{"password": "(hidden)", "a": 1}'),
        ('{"password": "", "a": 1}', '{"password": "", "a": 1}'),
        ("password = abc; x", "password = (hidden); x"),
        ('"source.password": {"value": "********"}', '"source.password": {"value": "********"}'),
        ('"source.password_file": "/etc/p"', '"source.password_file": "/etc/p"'),
        ("USER a IDENTIFIED BY 'x y' REQUIRE", "USER a IDENTIFIED BY '(hidden)' REQUIRE"),
        (
            "IDENTIFIED WITH caching_sha2_password AS '$A$'",
            "IDENTIFIED WITH caching_sha2_password AS '(hidden)'",
        ),
        ("nothing of that", "nothing of that"),
    ],
)  # fmt: skip
def test_what_is_a_secret_by_its_place(text: str, redacted: str) -> None:
    assert Redaction([]).text(text) == redacted


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(min_size=3), st.text(), st.text())
def test_a_known_secret_is_nowhere(secret: str, before: str, after: str) -> None:
    redaction = Redaction([secret])
    for form in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        assert form not in redaction.text(f"{before}{form}{after}") or form in "(hidden)"


def test_values_within_values() -> None:
    value = {"a": ["said s3cret!", 1, None, {"s3cret!": 2.5}]}
    assert Redaction(["s3cret!"]).value(value) == {
        "a": ["said (hidden)", 1, None, {"(hidden)": 2.5}]
    }


def test_variables_that_are_passwords() -> None:
    given_ = {
        "wsrep_sst_auth": "user:word",
        "report_password": "word",
        "ssl_fips_mode": "OFF",
        "empty_password": "",
        "init_connect": "SET PASSWORD = 'word'",
    }
    assert Redaction([]).variables(given_) == {
        "wsrep_sst_auth": "(hidden)",
        "report_password": "(hidden)",
        "ssl_fips_mode": "OFF",
        "empty_password": "",
        "init_connect": "SET PASSWORD = '(hidden)'",
    }
