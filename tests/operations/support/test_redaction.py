"""No secret passes, and the rest stays readable."""

import base64
import json
from urllib.parse import quote, quote_plus

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
        ("password = abc; x", "password = (hidden) x"),
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


@pytest.mark.parametrize(
    "text",
    [
        # Statements, as they are, and as a log of JSON quotes them.
        "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = 'a S3 b', MASTER_PASSWORD='S3'",
        r"SOURCE_PASSWORD=\'S3\', PASSWORD := \"S3 x\"",
        "SET PASSWORD FOR 'a'@'%' = 'S3' REPLACE 'S3' RETAIN CURRENT PASSWORD",
        "SET PASSWORD = OLD_PASSWORD('S3')",
        "SET PASSWORD FOR a@b = PASSWORD('S3')",
        "CREATE USER a IDENTIFIED BY 'it''S3', b IDENTIFIED/**/WITH x\nAS 'S3'",
        r"IDENTIFIED BY 'a\'S3'",
        r"IDENTIFIED BY\n\"x S3\" REQUIRE",
        "IDENTIFIED VIA ed25519 USING PASSWORD('S3') OR mysql_native_password AS 'S3'",
        "IDENTIFIED BY PASSWORD '*S3'",
        "OPTIONS (USER 'u', PASSWORD _utf8mb4'S3')",
        "password = 'never ends S3",
        # URLs.
        "mysql://u:p@S3@db/x mysql://u:p/S3@db https://S3@h/ //u:S3@h",
        r"mysql:\/\/u:S3@db",
        # Environments, files of options, commands, headers.
        "MTSD_TARGET_PASSWORD=S3 MYSQL_PWD=S3,b AWS_SECRET_ACCESS_KEY=S3 API_KEY: S3",
        "# password = S3 # former",
        "mysqldump -uroot -pS3 x; mysql -p'S3' --password S3",
        "Authorization: Basic S3",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIS3\nS3==\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\\nMIIS3\\n",
    ],
)
def test_each_form_of_a_secret_that_nobody_has_told(text: str) -> None:
    redaction = Redaction([])
    for form in (text, json.dumps({"event": text}), json.dumps({"a": [json.dumps(text)]})):
        for redacted in (redaction.text(form), redaction.document(f"{form}\nnext\n")):
            assert "S3" not in redacted, redacted


def test_json_stays_json() -> None:
    given_ = {"password": 'a"b', "Token": 1003, "error": 'password="a\\"b"', "password_file": "/x"}
    hidden = {"password": "(hidden)", "Token": "(hidden)", "error": 'password="(hidden)"'}
    for indent in (None, 2):
        text = json.dumps(given_, indent=indent)
        assert json.loads(Redaction([]).document(text)) == {**hidden, "password_file": "/x"}


def test_codes_of_a_known_secret() -> None:
    secret = "pä ss'w\"o\\rd&/1"
    raw = secret.encode()
    codes = (
        base64.b64encode(raw), base64.b64encode(b"user:" + raw), base64.b64encode(b"u:" + raw),
        base64.urlsafe_b64encode(raw), raw.hex().encode(), raw.hex().upper().encode(),
        quote(secret).encode(), quote_plus(secret).encode(), repr(raw)[2:-1].encode(),
        json.dumps(json.dumps(secret)).encode(),
    )  # fmt: skip
    for code in codes:
        redacted = Redaction([secret]).text(code.decode())
        assert "(hidden)" in redacted
        assert len(redacted.replace("(hidden)", "")) < len(code) / 2, code


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
