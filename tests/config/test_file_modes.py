"""Whose files are warned about: by mode, owner and group, for each account that mtsd may have."""

import stat
from pathlib import Path

import pytest

from mtsd.config import load
from mtsd.config.file_modes import Account, Mode
from tests.config.conftest import Write

ROOT = Account(0, 0, frozenset({0}), private=True)
SERVICE = Account(110, 110, frozenset({110, 120}), private=True)
SHARED = Account(1000, 100, frozenset({100}), private=False)
GROUP = ("its group",)
OTHERS = ("others",)
BOTH = ("its group", "others")


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "account", "readers"),
    [
        (0o600, 110, 110, SERVICE, ()),
        (0o640, 0, 110, SERVICE, ()),  # the usual way
        (0o640, 0, 120, SERVICE, ()),  # as ssl-cert
        (0o440, 0, 0, SERVICE, ()),  # as systemd shows an access control list
        (0o640, 110, 110, SERVICE, ()),
        (0o640, 110, 120, SERVICE, GROUP),  # the owner does not need it
        (0o640, 0, 999, SERVICE, GROUP),
        (0o644, 0, 110, SERVICE, OTHERS),
        (0o644, 110, 999, SERVICE, BOTH),
        (0o640, 0, 110, ROOT, ()),
        (0o604, 0, 0, ROOT, OTHERS),
    ],
)
def test_who_reads_a_secret(
    mode: int, uid: int, gid: int, account: Account, readers: tuple[str, ...]
) -> None:
    assert Mode(stat.S_IFREG | mode, uid, gid).readers(account) == readers


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "account", "writers"),
    [
        (0o644, 0, 0, SERVICE, ()),
        (0o664, 110, 110, SERVICE, ()),  # a group of its own, as on Ubuntu
        (0o664, 1000, 100, SHARED, GROUP),
        (0o660, 0, 120, SERVICE, GROUP),
        (0o660, 999, 110, SERVICE, GROUP),
        (0o664, 0, 0, SERVICE, ()),
        (0o622, 110, 110, SERVICE, OTHERS),
        (0o666, 0, 120, ROOT, BOTH),
    ],
)
def test_who_writes(
    mode: int, uid: int, gid: int, account: Account, writers: tuple[str, ...]
) -> None:
    assert Mode(stat.S_IFREG | mode, uid, gid).writers(account) == writers
    assert Mode(stat.S_IFDIR | mode, uid, gid).writers(account) == writers
    assert Mode(stat.S_IFDIR | stat.S_ISVTX | mode, uid, gid).writers(account) == ()


def test_each_file_and_folder_is_looked_at(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    for name in ("secret", "key", "ca"):
        (folder / name).touch(0o600)
    (folder / "secret").write_text("x")
    path = write(
        '[source]\npassword_file = "keys/secret"\ntls = "verify_ca"\ntls_key = "keys/key"\n'
        'tls_cert = "keys/ca"\ntls_ca = "keys/ca"\n[target]\npassword = "x"\n'
    )
    assert load(path).warnings == ()
    path.chmod(0o646)
    (folder / "secret").chmod(0o602)
    (folder / "key").chmod(0o604)
    (folder / "ca").chmod(0o606)
    folder.chmod(0o707)
    told = load(path).warnings
    assert [warning.partition(" by others")[0] for warning in told] == [
        f"{path} holds a password and is readable",
        f"{path} is writable",
        f"{folder / 'secret'} is writable",
        f"{folder} is writable",
        f"{folder / 'key'} holds a private key and is readable",
        f"{folder} is writable",
        f"{folder / 'ca'} is writable",
        f"{folder} is writable",
    ]
    assert told[3].endswith("who may replace secret in it: chmod o-w")


def test_a_link_is_as_safe_as_what_it_leads_to(write: Write, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret").touch(0o600)
    (elsewhere / "secret").write_text("x")
    (tmp_path / "secret").symlink_to(elsewhere / "secret")
    elsewhere.chmod(0o707)
    (told,) = load(write('[source]\npassword_file = "secret"\n')).warnings
    assert told.startswith(f"{elsewhere} is writable by others")
