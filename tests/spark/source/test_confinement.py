"""Options name nothing that the administrator of a shared Spark has not allowed."""

import json
from pathlib import Path

import pytest

from mtsd.spark.logs.failure import UnreadableBinlogError
from mtsd.spark.options.options import OptionError, parse_options
from mtsd.spark.source.confinement import ALLOW, confine
from mtsd.spark.source.data_source import BinlogDataSource


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "logs" / "out").symlink_to("/etc")
    monkeypatch.setenv(
        ALLOW,
        f"path={tmp_path}/logs, path=s3://b/logs,file={tmp_path}/keys,env=PW,host=a:1,host=/s",
    )
    return tmp_path


@pytest.mark.parametrize(
    "path",
    ["{}/logs", "{}/logs/binlog.000001", "file://{}/logs", "file:{}/logs", "{}/logs/binlog.*",
     "s3://b/logs", "s3://b/logs/x.*"],
)  # fmt: skip
def test_what_is_inside_may_be_read(folder: Path, path: str) -> None:
    options = parse_options({"path": path.format(folder)})
    assert confine(options) is options


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "{}", "{}/logs2", "{}/logs/../x", "{}/log*", "{}/l*/../logs",
     "{}/logs/out/passwd", "{}/out/*", "{}/logs/*/passwd", "file:/etc",
     "file:///etc", "http://169.254.169.254/latest", "s3://b/logs2", "s3://b/logs/../x",
     "s3://b/logs/%2e%2E/x", "s3://b/logs/..%2fx", "simplecache::s3://b/logs", "s3://b/logs/x::file:///etc/passwd"],
)  # fmt: skip
def test_what_is_outside_may_not(folder: Path, path: str) -> None:
    outside = path.format(folder)
    several = json.dumps([f"{folder}/logs", outside])
    for given in ({"path": outside}, {"paths": several}):
        with pytest.raises(OptionError, match=f"option 'path': this Spark .*{ALLOW}"):
            confine(parse_options(given))


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"host": "a", "port": "1", "password_env": "PW"}, ""),
        ({"unix_socket": "/s", "password": "x"}, ""),
        ({"host": "a", "port": "1", "password_file": "{}/keys/x"}, ""),
        ({"host": "a", "port": "2"}, "'host'"),
        ({"unix_socket": "/t"}, "'unix_socket'"),
        ({"host": "evil", "password_env": "AWS_SECRET"}, "'host' and 'password_env'"),
        ({"host": "a", "port": "1", "password_file": "/etc/shadow"}, "'password_file'"),
        (
            {"host": "a", "port": "1", "tls": "verify_ca", "tls_ca": "/etc/shadow"},
            "'tls_ca'",
        ),
    ],
)
def test_a_live_source(folder: Path, given: dict[str, str], refused: str) -> None:
    options = parse_options({name: text.format(folder) for name, text in given.items()})
    if not refused:
        assert confine(options) is options
        return
    with pytest.raises(OptionError, match=f"option {refused}: "):
        confine(options)


@pytest.mark.usefixtures("folder")
def test_the_format_is_confined() -> None:
    with pytest.raises(UnreadableBinlogError, match=ALLOW):
        BinlogDataSource({"path": "/etc/passwd"}).schema()


def test_what_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    options = parse_options({"path": "/x"})
    assert confine(options) is options
    monkeypatch.setenv(ALLOW, "")
    with pytest.raises(OptionError, match="option 'path'"):
        confine(options)
    monkeypatch.setenv(ALLOW, "/x")
    with pytest.raises(OptionError, match="has the item '/x': allowed are path=FOLDER"):
        confine(options)


def test_a_password_among_the_options_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    given = {"host": "h", "password": "Hunter2", "shape": "changes"}
    source = BinlogDataSource(given)
    source.reader(source.schema())
    (said,) = caplog.messages
    assert "use 'password_file'" in said
    assert "Hunter2" not in said
