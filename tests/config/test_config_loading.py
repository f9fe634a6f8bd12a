import traceback
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from mtsd.config import (
    DEFAULT,
    FIELDS,
    ConfigurationError,
    FilePosition,
    Loaded,
    document,
    environment_variable,
    load,
)
from mtsd.config.kinds import choices, is_plain_text
from mtsd.config.problems import shown
from mtsd.config.settings import SECTIONS
from tests.config.conftest import Write

SECRET = "geheim-4711"


def problems(load_it: Callable[[], Loaded]) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_it()
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.problems)
    return lines


def test_an_empty_file_gives_the_defaults(write: Write) -> None:
    loaded = load(write(""))
    assert set(loaded.origins) == set(FIELDS)
    assert set(loaded.origins.values()) == {DEFAULT}
    assert loaded.warnings == ()
    assert loaded.settings.source.user == "repl"
    assert loaded.settings.target.port == 3307


def test_settings_are_frozen(write: Write) -> None:
    settings = load(write("")).settings
    with pytest.raises(FrozenInstanceError):
        settings.source.port = 1  # type: ignore[misc]  # this is what is tested


def test_precedence(write: Write, tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    path = write("[source]\nport = 1\n[target]\nport = 1\n[replica]\nparallel_workers = 1\n")
    for key in ("source.port", "target.port", "source.server_id"):
        (credentials / key).write_text("2\n")
    environ = {"MTSD_TARGET__PORT": "3", "MTSD_SOURCE__SERVER_ID": "3", "HOME": "/"}
    overrides = {"source.server_id": "4"}
    loaded = load(path, overrides, environ, credentials)
    found = {
        key: (document(loaded.settings)[key], loaded.origins[key])
        for key in ("replica.parallel_workers", "source.port", "target.port", "source.server_id")
    }
    assert found == {
        "replica.parallel_workers": (1, f"file {path}"),
        "source.port": (2, "systemd credential source.port"),
        "target.port": (3, "environment variable MTSD_TARGET__PORT"),
        "source.server_id": (4, "command line"),
    }


def texts(write: Write) -> dict[str, str]:
    """Every key's default, as the environment and the command line write it."""
    return {
        key: str(value) if is_plain_text(FIELDS[key]) else shown(value)
        for key, value in document(load(write("")).settings).items()
    }


def test_every_key_can_be_set_in_the_environment(write: Write) -> None:
    environ = {environment_variable(key): text for key, text in texts(write).items()}
    loaded = load(write(""), environ=environ)
    assert loaded.settings == load(write("")).settings
    for key, origin in loaded.origins.items():
        assert origin == f"environment variable {environment_variable(key)}"


def test_every_key_can_be_set_on_the_command_line(write: Write) -> None:
    loaded = load(write(""), overrides=texts(write))
    assert loaded.settings == load(write("")).settings
    assert set(loaded.origins.values()) == {"command line"}


def test_texts_are_read_as_in_the_file_but_without_quotes(write: Write) -> None:
    overrides = {
        "source.start": "binlog.000003:157",
        "source.password": "12",
        "target.binary_log": "false",
        "replica.parallel_workers": " 16 ",
        "replica.stop_timeout": "5",
        "replica.skip_errors": "[1062, 1032]",
        "replica.bind": '[["a", "b"], ["c"]]',
    }
    settings = load(write(""), overrides).settings
    assert settings.source.start == FilePosition("binlog.000003", 157)
    assert settings.source.password.get_secret_value() == "12"
    assert settings.target.binary_log is False
    assert settings.replica.parallel_workers == 16
    assert settings.replica.stop_timeout == 5.0
    assert settings.replica.skip_errors == (1062, 1032)
    assert settings.replica.bind == (("a", "b"), ("c",))


@pytest.mark.parametrize("text", ["eight", "8.5", "'8'", "8\nx = 1", "", "true", "[8]"])
def test_a_text_that_is_no_number_is_refused(text: str, write: Write) -> None:
    (line,) = problems(lambda: load(write(""), {"replica.parallel_workers": text}))
    assert line.startswith("replica.parallel_workers: found ")
    assert line.endswith("allowed is an integer from 0 to 1024 (command line)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[replica]\nparalel_workers = 8", "replica.paralel_workers: does not exist; did you mean replica.parallel_workers?"),  # noqa: E501  one line of output
        ("[replicas]\nx = 8", "replicas: does not exist; did you mean replica?"),
        ("parallel_workers = 8", "parallel_workers: does not exist; did you mean replica.parallel_workers?"),  # noqa: E501  one line of output
        ("[target]\nserver_id = 8", "target.server_id: does not exist; did you mean source.server_id?"),  # noqa: E501  one line of output
        ("zzz = 8", "zzz: does not exist; config.example.toml lists all keys"),
        ("[log]\n'a\\n\"b' = 8", 'log."a\\\\n\\"b": does not exist; config.example.toml lists all keys'),  # noqa: E501  one line of output
        ("replica = 8", "replica: found a value; allowed is a table, [replica]"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_refused(text: str, expected: str, write: Write) -> None:
    path = write(text)
    assert problems(lambda: load(path)) == [f"{expected} (file {path})"]


def test_an_unknown_variable_override_or_credential_is_refused(
    write: Write, tmp_path: Path
) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "source.pasword").write_text(SECRET)
    (credentials / "server-key.pem").write_text(SECRET)
    environ = {"MTSD_SOURCE_PASSWORD": SECRET, "MTSDX": "1", "MTSD_target__port": "1"}
    wrong = {"source.hots": SECRET, "source": "3"}
    lines = problems(lambda: load(write(""), wrong, environ, credentials))
    assert lines == [
        (
            "source.pasword: does not exist; did you mean source.password? "
            "(systemd credential source.pasword)"
        ),
        "MTSD_SOURCE_PASSWORD: does not exist; did you mean MTSD_SOURCE__PASSWORD? (environment)",
        "MTSD_target__port: does not exist; did you mean MTSD_TARGET__PORT? (environment)",
        "source.hots: does not exist; did you mean source.host? (command line)",
        "source: is a section; name one of its keys, such as source.host (command line)",
    ]


def test_a_syntax_error_names_file_and_line(write: Write) -> None:
    path = write("[source]\nhost = = 1\n")
    (line,) = problems(lambda: load(path))
    assert line.startswith(f"{path}, line 2, column 8: found a syntax error, ")
    assert "allowed is TOML" in line


def test_lists_hundreds_deep_are_one_line_too(write: Write) -> None:
    deep = "[" * 5000 + "]" * 5000
    path = write(f"[filter]\ndo_db = {deep}\n")
    (line,) = problems(lambda: load(path))
    assert line.startswith(f"{path}: found lists or tables in each other, hundreds deep; ")
    (line,) = problems(lambda: load(write(""), {"filter.do_db": deep}))
    assert line.startswith("filter.do_db: found ")


def test_a_host_is_no_url_and_has_no_port(write: Write) -> None:
    lines = problems(
        lambda: load(write("[source]\nhost = 'db1:3306'\n[target]\nhost = 'mysql://me:word@db2/'"))
    )
    found = 'source.host: found "db1:3306", a colon, and no IPv6 address: the port has a key of '
    assert lines[0].startswith(found)
    assert lines[1].startswith('target.host: found "mysql://…@db2/"; allowed is a host name')
    for host in ("::1", "fe80::1%eth0", "2001:db8::42"):
        assert load(write(f"[source]\nhost = '{host}'\n")).settings.source.host == host


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    (line,) = problems(lambda: load(missing))
    assert line.startswith(f"{missing}: cannot be read: No such file or directory; ")
    # It may be named by the environment, or by nobody: /etc/mtsd/config.toml.
    assert line.endswith("(the file of settings)")
    (line,) = problems(lambda: load(tmp_path))
    assert "Is a directory" in line
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    (line,) = problems(lambda: load(binary))
    assert "not UTF-8" in line


def test_what_else_is_wrong_is_said_beside_an_unreadable_file(tmp_path: Path) -> None:
    lines = problems(
        lambda: load(
            tmp_path / "missing.toml",
            {"source.port": "x", "source.host": "", "target.gtid": "mirrors"},
            {"MTSD_X": "1"},
        )
    )
    # The missing host is not reported: the file may be what sets it.
    assert [line.split(":")[0] for line in lines[1:]] == ["MTSD_X", "source.port", "target.gtid"]


@pytest.mark.parametrize("section", ["source", "target"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('host = "a"\nunix_socket = "/s"', '{0}.unix_socket: found "/s" together with {0}.host = "a"'),  # noqa: E501  one line of output
        ('host = ""', '{0}.host: found "", and no {0}.unix_socket either'),
        (f'password = "{SECRET}"\npassword_file = "/f"', '{0}.password_file: found "/f" together with {0}.password'),  # noqa: E501  one line of output
        ('tls_cert = "/c"', '{0}.tls_cert: found "/c" without {0}.tls_key'),
        ('tls_key = "/k"', '{0}.tls_key: found "/k" without {0}.tls_cert'),
    ],
)  # fmt: skip
def test_keys_that_do_not_go_together(section: str, text: str, expected: str, write: Write) -> None:
    (line,) = problems(lambda: load(write(f"[{section}]\n{text}\n")))
    assert line.startswith(expected.format(section) + "; allowed is ")
    assert SECRET not in line


def test_the_empty_text_takes_back_what_the_file_says(write: Write) -> None:
    path = write('[source]\nhost = "a"\npassword_file = "/no/such"\n')
    loaded = load(path, {"source.host": "", "source.unix_socket": "/s", "source.password_file": ""})
    assert loaded.settings.source.unix_socket == Path("/s")
    assert loaded.settings.source.address == "/s"
    assert loaded.settings.target.address == "127.0.0.1:3307"


def test_errors_of_all_kinds_come_together(write: Write) -> None:
    lines = problems(
        lambda: load(
            write(
                "[source]\nport = 0\npassword_file = '/no/such'\nnone = 1\n"
                "[target]\nhost = 'a'\nunix_socket = '/s'\n"
                "[replica]\nbind = [['a'], ['a']]\n"
            ),
            {"log.level": "loud"},
            {"MTSD_NONE": "1"},
        )
    )
    assert [line.split(":")[0] for line in lines] == [
        "source.none",
        "MTSD_NONE",
        "source.port",
        "replica.bind",
        "log.level",
        "target.unix_socket",
        "source.password_file",
    ]


def test_relative_paths_are_seen_from_the_file(write: Write, tmp_path: Path) -> None:
    path = write('[target]\nunix_socket = "run/mysqld.sock"\n[source]\ntls_ca = "/etc/ca.pem"\n')
    settings = load(path, {"source.tls_key": "key.pem", "source.tls_cert": "c.pem"}).settings
    assert settings.target.unix_socket == tmp_path / "run/mysqld.sock"
    assert settings.status.socket == tmp_path / "mtsd.sock"
    assert settings.source.tls_ca == Path("/etc/ca.pem")
    assert settings.source.tls_key == Path("key.pem")


def test_a_password_file_is_read(write: Write, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET} \n")
    secret.chmod(0o600)
    loaded = load(write('[source]\npassword_file = "secret"\n'))
    assert loaded.settings.source.password.get_secret_value() == f"{SECRET} "
    assert loaded.settings.target.password.get_secret_value() == ""
    assert loaded.origins["source.password"] == f"source.password_file {secret}"
    assert loaded.warnings == ()
    secret.chmod(0o644)
    (warning,) = load(write('[target]\npassword_file = "secret"\n')).warnings
    assert warning.startswith(f"{secret} holds a password and is readable by others")


def test_a_password_file_that_cannot_be_read(write: Write, tmp_path: Path) -> None:
    path = write('[source]\npassword_file = "secret"\n')
    assert problems(lambda: load(path)) == [
        (
            f"source.password_file: {tmp_path / 'secret'} cannot be read: "
            f"No such file or directory; allowed is a readable UTF-8 text file (file {path})"
        )
    ]
    (tmp_path / "secret").write_bytes(b"\xff")
    (line,) = problems(lambda: load(path))
    assert "not UTF-8" in line


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ("", "is empty: the login is without a password"),
        ("\n", "is empty: the login is without a password"),
        (f"{SECRET}\n\n", "has several lines"),
        (f"{SECRET}\nuser: repl", "has several lines"),
    ],
)
def test_a_password_that_is_hardly_meant(
    write: Write, tmp_path: Path, held: str, told: str
) -> None:
    for name in ("secret", "source.password"):
        (tmp_path / name).write_text(held)
        (tmp_path / name).chmod(0o600)
    loaded = load(write('[source]\npassword_file = "secret"\n'))
    assert loaded.settings.source.password.get_secret_value() == held.removesuffix("\n")
    in_file = loaded.warnings
    credential = load(write(""), credentials_directory=tmp_path).warnings
    for name, warnings in (("secret", in_file), ("source.password", credential)):
        (warning,) = warnings
        assert warning.startswith(f"{tmp_path / name} {told}")
        assert SECRET not in warning


def test_a_file_without_an_end(write: Write) -> None:
    endless = Path("/dev/zero")
    (line,) = problems(lambda: load(endless))
    assert line.startswith("/dev/zero: cannot be read: it is larger than 1 MiB; ")
    (line,) = problems(lambda: load(write(f"[source]\npassword_file = '{endless}'\n")))
    assert line.startswith("source.password_file: /dev/zero cannot be read: it is larger than")


def test_a_credential_loses_one_newline(write: Write, tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "target.password").write_text(f"{SECRET}\n\n")
    loaded = load(write(""), credentials_directory=credentials)
    assert loaded.settings.target.password.get_secret_value() == f"{SECRET}\n"


def test_files_as_an_editor_on_windows_writes_them(write: Write, tmp_path: Path) -> None:
    path = write("")
    path.write_bytes(b'\xef\xbb\xbf[source]\r\npassword_file = "secret"\r\n')
    (tmp_path / "secret").write_bytes(b"\xef\xbb\xbf" + SECRET.encode() + b"\r\n")
    assert load(path).settings.source.password.get_secret_value() == SECRET


def test_a_credential_can_be_the_file_that_a_key_names(write: Write, tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    for name in ("source.tls_cert", "source.tls_key", "target.password_file"):
        (credentials / name).write_text(SECRET)
        (credentials / name).chmod(0o400)
    loaded = load(write(""), credentials_directory=credentials)
    assert loaded.settings.source.tls_key == credentials / "source.tls_key"
    assert loaded.settings.target.password.get_secret_value() == SECRET
    assert SECRET not in repr(loaded)


def test_credentials_that_cannot_be_read(write: Write, tmp_path: Path) -> None:
    (line,) = problems(lambda: load(write(""), credentials_directory=tmp_path / "none"))
    assert line.startswith(f"{tmp_path / 'none'}: cannot be read: ")
    (tmp_path / "source.password").write_bytes(b"\xff")
    (line,) = problems(lambda: load(write(""), credentials_directory=tmp_path))
    assert line.startswith(f"{tmp_path / 'source.password'}: cannot be read: not UTF-8")


def test_warnings(write: Write) -> None:
    path = write(f'[source]\npassword = "{SECRET}"\ntls_ca = "/ca"\n')
    path.chmod(0o644)
    warnings = load(path, {"target.password": SECRET}).warnings
    assert [warning.partition(" is ")[0] for warning in warnings] == [
        f"{path} holds a password and",
        "target.password",
        "source.tls_ca has no effect while source.tls",
    ]
    assert SECRET not in "".join(warnings)
    path = write('[source]\npassword = ""\ntls = "verify_ca"\ntls_ca = "/ca"\n')
    path.chmod(0o644)
    assert load(path).warnings == ()


@pytest.mark.parametrize("section", SECTIONS)
def test_secrets_are_never_shown(section: str, write: Write, tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    # A secret where a path or a number belongs: credentials are where people put secrets.
    for key in FIELDS:
        if key.startswith(section) and not choices(FIELDS[key]):
            (credentials / key).write_text(f"{SECRET}\0")
    text = (
        f'[source]\npassword = ["{SECRET}"]\npasswort = "{SECRET}"\n'
        f'[target]\npassword.x = "{SECRET}"\nuser.password = "{SECRET}"\n'
        f'["log"]\nlevel = "x"\n["x"]\ny = "{SECRET}"\n'
    )
    overrides = {"target.pass": SECRET}
    with pytest.raises(ConfigurationError) as caught:
        load(write(text), overrides, {"MTSD_PASSWORD": SECRET}, credentials)
    error = caught.value
    assert SECRET not in "".join(traceback.format_exception(error))
    assert SECRET not in repr(error) + repr(error.problems)

    loaded = load(write(f'[source]\npassword = "{SECRET}"\n'))
    assert loaded.settings.source.password.get_secret_value() == SECRET
    assert SECRET not in repr(loaded) + str(loaded.settings) + shown(document(loaded.settings))
